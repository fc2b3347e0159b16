// SPDX-License-Identifier: GPL-2.0

//! The slots of an endpoint that neither connect it nor transfer data.
//!
//! Tables without a supported call are filled, too, so that no caller jumps through NULL.
//!
//!

use super::{
    msg::{
        EpPhase,
        Msg, //
    },
    posting::Target,
    EndpointBody,
    EndpointObject, //
    EP as CLASS,
};
use crate::{
    object::{
        binding::bind,
        children::Place,
        closing::slots,
        obj::{
            Class,
            Object, //
        }, //
    },
    prelude::*,
    provider::cq::Context,
    support::{
        num::signed_size,
        table::{
            unserved,
            OpsSlot,
            Table, //
        }, //
    }, //
};
use kfi_bindings::{
    kfi_ops,
    kfi_ops_ep,
    kfi_ops_tagged,
    kfid,
    kfid_ep,
    KFI_OPT_CM_DATA_SIZE,
    KFI_OPT_ENDPOINT, //
};

impl Object for EndpointBody {
    type C = kfid_ep;
    type Place = Place<Self>;
    const CLASS: &'static Class = &CLASS;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        control: Some(control),
        ..slots::<Self>()
    };
}

/// Options and contexts.
pub(super) static EP: Table<kfi_ops_ep> = Table(kfi_ops_ep {
    size: size_of::<kfi_ops_ep>(),
    cancel: Some(cancel),
    getopt: Some(getopt),
    setopt: Some(setopt),
    tx_ctx: OpsSlot::NOSYS,
    rx_ctx: OpsSlot::NOSYS,
    rx_size_left: Some(rx_size_left),
    tx_size_left: Some(tx_size_left),
});

/// Tagged messages.
pub(super) static TAGGED: Table<kfi_ops_tagged> = unserved!(
    kfi_ops_tagged: recv, recvv, recvbv, recvmsg, send, sendv, sendbv, sendmsg, inject, senddata,
    injectdata, recvsgl, sendsgl
);

/// Enables the endpoint: `kfi_control()` supports `KFI_ENABLE` only. May sleep.
///
/// # Safety
///
/// `fid` is an open object.
pub(super) unsafe extern "C" fn control(
    fid: *mut kfid,
    command: c_int,
    _arg: *mut c_void,
) -> c_int {
    if u32::try_from(command) != Ok(kfi_bindings::KFI_ENABLE) {
        return Refusal::new(Errno::ENOSYS, c"unknown command").report();
    }
    // SAFETY: `fid` is an open object.
    unsafe { EndpointObject::call(fid, |endpoint| endpoint.enable()) }
}

/// Cancels a receive: `kfi_cancel()`. Any context.
///
/// # Safety
///
/// `fid` is an open object.
unsafe extern "C" fn cancel(fid: *mut kfid, context: *mut c_void) -> isize {
    // SAFETY: `fid` is an open object.
    let target = unsafe { Target::find(fid) };
    let cancelled = target.and_then(|target| target.cancel(Context::new(context)));
    signed_size(cancelled.map_or_else(Refusal::report, |()| 0))
}

const UNKNOWN: Refusal = Refusal::new(Errno::ENOPROTOOPT, c"no such option");

/// Returns the number of an option.
fn name(level: c_int, name: c_int) -> Result<u32, Refusal> {
    match (u32::try_from(level), u32::try_from(name)) {
        (Ok(KFI_OPT_ENDPOINT), Ok(name)) => Ok(name),
        _ => Err(UNKNOWN),
    }
}

impl Msg {
    /// Sets an option. `value` is `None` if the caller passed no `unsigned int`. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOPROTOOPT`: the endpoint has no option with this name.
    /// - `EINVAL`: the option is read-only, or the value is out of range.
    /// - `EOPBADSTATE`: the endpoint has tried to connect.
    fn set_option(&self, name: u32, value: Option<u32>) -> Result<(), Refusal> {
        if name == KFI_OPT_CM_DATA_SIZE {
            return Err(Refusal::new(Errno::EINVAL, c"the option can't be set"));
        }
        let found = self.options.find(name);
        let (option, values) = found
            .filter(|_| self.limits.bounded)
            .ok_or(UNKNOWN.value(widen_u32(name)))?;
        let wrong = Refusal::new(Errno::EINVAL, c"not a value of this option");
        let value = value.ok_or(wrong)?;
        if !values.contains(&value) {
            return Err(wrong.value(widen_u32(value)));
        }
        match self.phase.get() {
            EpPhase::New | EpPhase::Enabled => {
                option.store(value, Relaxed);
                Ok(())
            }
            _ => Err(Refusal::new(
                Errno::EOPBADSTATE,
                c"a connection was tried before",
            )),
        }
    }

    /// Returns the value of an option of type `unsigned int`.
    fn option(&self, name: u32) -> Result<u32, Refusal> {
        let found = self.options.find(name);
        let (option, _) = found
            .filter(|_| self.limits.bounded)
            .ok_or(UNKNOWN.value(widen_u32(name)))?;
        Ok(option.load(Relaxed))
    }
}

/// Sets an option: `kfi_setopt()`. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `value` is null or has `len` bytes.
pub(super) unsafe extern "C" fn setopt(
    fid: *mut kfid,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: `fid` is an open object. `value` is read only if it isn't null and has the bytes of a `u32`.
    unsafe {
        EndpointObject::call(fid, |endpoint| {
            let msg = endpoint.transferring()?;
            let fits = !value.is_null() && len == size_of::<u32>();
            let value = fits.then(|| value.cast::<u32>().read_unaligned());
            msg.set_option(name(level, option)?, value)
        })
    }
}

/// Writes a value for C, and its size to `*len`.
///
/// # Safety
///
/// - `len` is null or valid for reads and writes.
/// - `value` is null or valid for writes of `*len` bytes.
unsafe fn give<T: Copy>(what: T, value: *mut c_void, len: *mut usize) -> Result<(), Refusal> {
    // SAFETY: `len` is null or valid for reads and writes.
    let len = unsafe { len.as_mut() }.ok_or(Refusal::NULL)?;
    let room = core::mem::replace(len, size_of::<T>());
    if room < size_of::<T>() {
        let refusal = Refusal::new(Errno::ETOOSMALL, c"no room for the option's value");
        return Err(refusal);
    }
    if value.is_null() {
        return Err(Refusal::NULL);
    }
    // SAFETY: `value` is valid for writes of `room` bytes, which are enough for a `T`.
    unsafe { value.cast::<T>().write_unaligned(what) };
    Ok(())
}

/// Reads an option: `kfi_getopt()`. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `value` is null or valid for writes of `*len` bytes.
pub(super) unsafe extern "C" fn getopt(
    fid: *mut kfid,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    // SAFETY: `fid` is an open object. `len` is null or valid, and `value` null or valid for `*len` bytes.
    unsafe {
        EndpointObject::call(fid, |endpoint| {
            let msg = endpoint.transferring()?;
            match name(level, option)? {
                KFI_OPT_CM_DATA_SIZE => {
                    let [size, _, _] = msg.limits.cm_data_size;
                    give(size, value, len)
                }
                other => give(msg.option(other)?, value, len),
            }
        })
    }
}

/// Returns the number of receives, or of other transfers, that the endpoint's queue and the completion queue
/// can take. Any context.
///
/// # Safety
///
/// `ep` is an open object.
unsafe fn left(ep: *mut kfid_ep, receives: bool) -> isize {
    // SAFETY: `ep` is an open object, and a `kfid_ep` begins with its fid.
    let target = unsafe { Target::find(ep.cast()) };
    target.and_then(|target| target.left(receives)).map_or_else(
        |refusal| signed_size(refusal.report()),
        |left| isize::try_from(left).unwrap_or(isize::MAX),
    )
}

/// Returns the free receive requests: `kfi_rx_size_left()`. Any context.
///
/// # Safety
///
/// `ep` is an open object.
pub(super) unsafe extern "C" fn rx_size_left(ep: *mut kfid_ep) -> isize {
    // SAFETY: `ep` is an open object.
    unsafe { left(ep, true) }
}

/// Returns the free transmit requests: `kfi_tx_size_left()`. Any context.
///
/// # Safety
///
/// `ep` is an open object.
pub(super) unsafe extern "C" fn tx_size_left(ep: *mut kfid_ep) -> isize {
    // SAFETY: `ep` is an open object.
    unsafe { left(ep, false) }
}
