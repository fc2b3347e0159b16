// SPDX-License-Identifier: GPL-2.0

//! `kfi_setopt()` and `kfi_getopt()`.
//!
//! Both may sleep.

use super::{
    msg::Msg,
    phase::Phase,
    EndpointObject, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32,
    refusal::Refusal, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    sync::atomic::Relaxed, //
};
use kfi_bindings::{
    kfid,
    KFI_OPT_CM_DATA_SIZE,
    KFI_OPT_ENDPOINT, //
};

const UNKNOWN: Refusal = Refusal::new(Errno::ENOPROTOOPT, c"no such option");

/// The number of an option.
fn name(level: c_int, name: c_int) -> Result<u32, Refusal> {
    match (u32::try_from(level), u32::try_from(name)) {
        (Ok(KFI_OPT_ENDPOINT), Ok(name)) => Ok(name),
        _ => Err(UNKNOWN),
    }
}

impl Msg {
    /// Sets an option to a value, if that is one of `unsigned int`.
    fn set_option(&self, name: u32, value: Option<u32>) -> Result<(), Refusal> {
        if name == KFI_OPT_CM_DATA_SIZE {
            return Err(Refusal::new(Errno::EINVAL, c"the option can't be set"));
        }
        let found = self.options().find(name);
        let (option, values) = found
            .filter(|_| self.limits().bounded)
            .ok_or(UNKNOWN.value(widen_u32(name)))?;
        let wrong = Refusal::new(Errno::EINVAL, c"not a value of this option");
        let value = value.ok_or(wrong)?;
        if !values.contains(&value) {
            return Err(wrong.value(widen_u32(value)));
        }
        match self.phase().get() {
            Phase::New | Phase::Enabled => {
                option.store(value, Relaxed);
                Ok(())
            }
            _ => Err(Refusal::new(
                Errno::EOPBADSTATE,
                c"a connection was tried before",
            )),
        }
    }

    /// An option that is an `unsigned int`.
    fn option(&self, name: u32) -> Result<u32, Refusal> {
        let found = self.options().find(name);
        let (option, _) = found
            .filter(|_| self.limits().bounded)
            .ok_or(UNKNOWN.value(widen_u32(name)))?;
        Ok(option.load(Relaxed))
    }
}

/// # Safety
///
/// As the C API demands: `fid` is an open endpoint; `value` is null or `len` bytes long.
pub(super) unsafe extern "C" fn setopt(
    fid: *mut kfid,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: `fid` is open by the requirements of this function; the value is read only if it is there,
    // and as long.
    unsafe {
        EndpointObject::call(fid, |endpoint| {
            let msg = endpoint.transferring()?;
            let fits = !value.is_null() && len == size_of::<u32>();
            let value = fits.then(|| value.cast::<u32>().read_unaligned());
            msg.set_option(name(level, option)?, value)
        })
    }
}

/// Gives C a value.
///
/// # Safety
///
/// `value` is null or has `*len` bytes, `len` is null or valid.
unsafe fn give<T: Copy>(what: T, value: *mut c_void, len: *mut usize) -> Result<(), Refusal> {
    // SAFETY: By the requirements of this function.
    let len = unsafe { len.as_mut() }.ok_or(Refusal::NULL)?;
    let room = core::mem::replace(len, size_of::<T>());
    if room < size_of::<T>() {
        let refusal = Refusal::new(Errno::ETOOSMALL, c"no room for the option's value");
        return Err(refusal);
    }
    if value.is_null() {
        return Err(Refusal::NULL);
    }
    // SAFETY: There is room, by the requirements of this function.
    unsafe { value.cast::<T>().write_unaligned(what) };
    Ok(())
}

/// # Safety
///
/// As the C API demands: `fid` is an open endpoint; `len` is null or valid, and `value` null or as long.
pub(super) unsafe extern "C" fn getopt(
    fid: *mut kfid,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe {
        EndpointObject::call(fid, |endpoint| {
            let msg = endpoint.transferring()?;
            match name(level, option)? {
                KFI_OPT_CM_DATA_SIZE => {
                    let [size, _, _] = msg.limits().cm_data_size;
                    give(size, value, len)
                }
                other => give(msg.option(other)?, value, len),
            }
        })
    }
}
