// SPDX-License-Identifier: GPL-2.0

//! The slots of an endpoint that transfer no data: control, options, and the connection (`struct kfi_ops_cm`).
//!
//! Tables without a supported call are filled, too, so that no caller jumps through NULL.

use super::{
    msg_ep::{
        EpPhase,
        Msg, //
    },
    posting::{
        with_target,
        Target, //
    },
    EndpointBody,
    EndpointObject,
    EP as CLASS, //
};
use crate::object::{
    prelude::*,
    trace, //
};
use core::ops::RangeInclusive;

impl Object for EndpointBody {
    type C = kfid_ep;
    type Place = Place<Self>;
    const CLASS: &'static Class = &CLASS;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        control: Some(control),
        ..slots::<Self>()
    };

    fn describe(object: &EndpointObject, about: &mut c::kfi_helper_object) {
        if !object.endpoint.is_enabled() {
            about.state = c::kfi_helper_state_KFI_STATE_DISABLED;
        }
        if let Some(msg) = &object.msg {
            msg.counters.describe(about);
        }
    }
}

/// Options and contexts.
pub(super) static EP: Table<c::kfi_ops_ep> = Table(c::kfi_ops_ep {
    size: size_of::<c::kfi_ops_ep>(),
    cancel: Some(cancel),
    getopt: Some(getopt),
    setopt: Some(setopt),
    tx_ctx: nosys!(EndpointBody, tx_ctx),
    rx_ctx: nosys!(EndpointBody, rx_ctx),
    rx_size_left: Some(size_left::<true>),
    tx_size_left: Some(size_left::<false>),
});

/// Tagged messages.
pub(super) static TAGGED: Table<c::kfi_ops_tagged> = unserved!(
    kfi_ops_tagged of EndpointBody: recv, recvv, recvbv, recvmsg, send, sendv, sendbv, sendmsg, inject, senddata,
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
    // SAFETY: `fid` is an open object.
    unsafe {
        EndpointObject::call(fid, c"control", |endpoint| match u32::try_from(command) {
            Ok(c::KFI_ENABLE) => endpoint.enable(),
            _ => Err(Refusal::new(Errno::ENOSYS, c"unknown command")),
        })
    }
}

/// Cancels a receive: `kfi_cancel()`. Any context.
///
/// # Safety
///
/// `fid` is an open object.
unsafe extern "C" fn cancel(fid: *mut kfid, context: *mut c_void) -> isize {
    // SAFETY: `fid` is an open object, and a `kfid_ep` begins with its fid.
    unsafe {
        with_target(
            fid.cast(),
            || c"cancel",
            |target| target.cancel(Context::new(context)).map(|()| 0),
        )
    }
}

const UNKNOWN: Refusal = Refusal::new(Errno::ENOPROTOOPT, c"no such option");

/// Returns the number of an option.
fn name(level: c_int, name: c_int) -> Result<u32, Refusal> {
    match (u32::try_from(level), u32::try_from(name)) {
        (Ok(c::KFI_OPT_ENDPOINT), Ok(name)) => Ok(name),
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
        if name == c::KFI_OPT_CM_DATA_SIZE {
            return Err(Refusal::new(Errno::EINVAL, c"the option can't be set"));
        }
        let (option, values) = self.option(name)?;
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

    /// Returns an option of type `unsigned int`, and its range of values.
    fn option(&self, name: u32) -> Result<(&Atomic<u32>, RangeInclusive<u32>), Refusal> {
        let found = self.options.find(name).filter(|_| self.limits.bounded);
        found.ok_or(UNKNOWN.value(widen_u32(name)))
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
        EndpointObject::call(fid, c"setopt", |endpoint| {
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
        EndpointObject::call(fid, c"getopt", |endpoint| {
            let msg = endpoint.transferring()?;
            match name(level, option)? {
                c::KFI_OPT_CM_DATA_SIZE => {
                    let [size, _, _] = msg.limits.cm_data_size;
                    give(size, value, len)
                }
                other => give(msg.option(other)?.0.load(Relaxed), value, len),
            }
        })
    }
}

/// Returns the number of receives, or of other transfers, that the endpoint's queue and the completion queue
/// can take: `kfi_rx_size_left()`, `kfi_tx_size_left()`. Any context.
///
/// # Safety
///
/// `ep` is an open object.
unsafe extern "C" fn size_left<const RECEIVES: bool>(ep: *mut kfid_ep) -> isize {
    let left = |target: Target<'_>| {
        let left = target.left(RECEIVES)?;
        Ok(isize::try_from(left).unwrap_or(isize::MAX))
    };
    // SAFETY: `ep` is an open object.
    unsafe { with_target(ep, || c"size_left", left) }
}

/// The slots for connections.
pub(super) static CM: Table<c::kfi_ops_cm> = Table(c::kfi_ops_cm {
    size: size_of::<c::kfi_ops_cm>(),
    setname: nosys!(EndpointBody, setname),
    getname: Some(getname),
    getpeer: Some(getpeer),
    connect: Some(connect),
    listen: nosys!(EndpointBody, listen),
    accept: Some(accept),
    reject: nosys!(EndpointBody, reject),
    shutdown: Some(shutdown),
    join: nosys!(EndpointBody, join),
});

/// Returns the private data for a peer.
///
/// # Errors
///
/// - `EINVAL`: `param` is NULL and `len` is not 0, or `len` exceeds 1024.
///
/// # Safety
///
/// `param` is null or has `len` bytes for `'a`.
pub(crate) unsafe fn private_data<'a>(
    param: *const c_void,
    len: usize,
) -> Result<&'a [u8], Refusal> {
    match (param.is_null(), len) {
        (_, 0) => Ok(&[]),
        (false, 1..=1024) => {
            // SAFETY: `param` isn't null, so it has `len` bytes for `'a`.
            Ok(unsafe { slice::from_raw_parts(param.cast(), len) })
        }
        _ => Err(Refusal::new(
            Errno::EINVAL,
            c"not the length of private data",
        )),
    }
}

/// Enables the endpoint if the consumer has not, and starts a connection. May sleep.
fn begin(
    endpoint: &EndpointObject,
    data: &[u8],
    most: usize,
    begin: impl FnOnce(&dyn crate::provider::msg_ep::MsgEpOps) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let msg = endpoint.transferring()?;
    if msg.phase.get() == EpPhase::New {
        // Another thread may have enabled the endpoint at the same time.
        endpoint.enable().or_else(|refusal| match msg.phase.get() {
            EpPhase::New => Err(refusal),
            _ => Ok(()),
        })?;
    }
    msg.begin(data, most, begin)
}

/// Calls `begin` to connect an endpoint, and fires the event with its result. `name` is the name of the call. May sleep.
///
/// # Safety
///
/// `ep` is an open object.
unsafe fn connecting(
    ep: *mut kfid_ep,
    name: &CStr,
    begin: impl FnOnce(&EndpointObject) -> Result<(), Refusal>,
) -> c_int {
    let call = |endpoint: &EndpointObject| {
        let begun = begin(endpoint);
        trace::connects(endpoint, trace::errno(&begun));
        begun
    };
    // SAFETY: `ep` is an open object, and begins with its fid.
    unsafe { Obj::call(ep.cast(), name, call) }
}

/// Connects to a peer: `kfi_connect()`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `addr` is null or a socket address.
/// - `param` is null or has `paramlen` bytes.
unsafe extern "C" fn connect(
    ep: *mut kfid_ep,
    addr: *const c_void,
    param: *const c_void,
    paramlen: usize,
) -> c_int {
    // SAFETY: `ep` is an open object, and begins with its fid. `addr` is null or an address, and `param` null or
    // `paramlen` bytes long.
    unsafe {
        connecting(ep, c"connect", |endpoint| {
            let msg = endpoint.transferring()?;
            if msg.init.answers {
                let why = c"the endpoint was made to answer a request";
                return Err(Refusal::new(Errno::EOPBADSTATE, why));
            }
            let peer = match addr.is_null() {
                true => {
                    let none = Refusal::new(Errno::EINVAL, c"no address of the peer");
                    msg.init.peer.ok_or(none)?
                }
                false => sockaddr::read(addr, None)?,
            };
            let data = private_data(param, paramlen)?;
            let [most, _, _] = msg.limits.cm_data_size;
            let bounds = msg.options.bounds(msg.init.dscp);
            begin(endpoint, data, most, |imp| imp.connect(peer, data, &bounds))
        })
    }
}

/// Accepts a connection request: `kfi_accept()`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `param` is null or has `paramlen` bytes.
unsafe extern "C" fn accept(ep: *mut kfid_ep, param: *const c_void, paramlen: usize) -> c_int {
    // SAFETY: `ep` is an open object, and begins with its fid. `param` is null or has
    // `paramlen` bytes.
    unsafe {
        connecting(ep, c"accept", |endpoint| {
            let data = private_data(param, paramlen)?;
            let msg = endpoint.transferring()?;
            let [_, most, _] = msg.limits.cm_data_size;
            let bounds = msg.options.bounds(msg.init.dscp);
            begin(endpoint, data, most, |imp| imp.accept(data, &bounds))
        })
    }
}

/// Shuts down the connection: `kfi_shutdown()`.
///
/// # Safety
///
/// `ep` is an open object.
unsafe extern "C" fn shutdown(ep: *mut kfid_ep, flags: u64) -> c_int {
    // SAFETY: `ep` is an open object, and begins with its fid.
    unsafe {
        Obj::call(ep.cast(), c"shutdown", |endpoint: &EndpointObject| {
            let msg = endpoint.transferring()?;
            no_flags(flags)?;
            msg.shut_down()
        })
    }
}

/// Writes an address of an endpoint for C: the call of this name.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `addr` is null or valid for writes of `*len` bytes.
unsafe fn write_address(
    fid: *mut kfid,
    name: &CStr,
    addr: *mut c_void,
    len: *mut usize,
    which: impl FnOnce(&EndpointObject) -> Result<SocketAddr, Refusal>,
) -> c_int {
    // SAFETY: `fid` is an open object. `len` is null or valid, and `addr` null or valid for `*len` bytes.
    unsafe {
        Obj::call(fid, name, |endpoint| {
            sockaddr::write(which(endpoint)?, addr, len)
        })
    }
}

/// Returns the local address: `kfi_getname()`.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `addr` is null or valid for writes of `*len` bytes.
unsafe extern "C" fn getname(fid: *mut kfid, addr: *mut c_void, len: *mut usize) -> c_int {
    let which = |endpoint: &EndpointObject| {
        let none = Refusal::new(Errno::EADDRNOTAVAIL, c"the endpoint has no address yet");
        endpoint.transferring()?.imp.name().ok_or(none)
    };
    // SAFETY: `fid` is an open object. `len` is null or valid, and `addr` null or valid for `*len` bytes.
    unsafe { write_address(fid, c"getname", addr, len, which) }
}

/// Returns the peer's address: `kfi_getpeer()`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `addr` is null or valid for writes of `*len` bytes.
unsafe extern "C" fn getpeer(ep: *mut kfid_ep, addr: *mut c_void, len: *mut usize) -> c_int {
    let which = |endpoint: &EndpointObject| {
        let msg = endpoint.transferring()?;
        match msg.phase.get() {
            EpPhase::Connected => msg.imp.peer().ok_or(EpPhase::Enabled.refusal()),
            phase => Err(phase.refusal().with_errno(Errno::ENOTCONN)),
        }
    };
    // SAFETY: `ep` is an open object, and begins with its fid. `len` is null or valid, and `addr` null or valid
    // for `*len` bytes.
    unsafe { write_address(ep.cast(), c"getpeer", addr, len, which) }
}
