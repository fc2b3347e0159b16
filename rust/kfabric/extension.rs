// SPDX-License-Identifier: GPL-2.0

//! `kfi_open_ops()` on a domain.

use crate::{
    dma,
    domain,
    errno::Errno,
    noio::NoIo,
    raw,
    refusal::Refusal,
    reserve, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr, //
};
use kfi_bindings::kfid;

/// `kfi_open_ops` of a domain.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
pub(crate) unsafe extern "C" fn open(
    fid: *mut kfid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    if ops.is_null() || name.is_null() {
        return Refusal::new(Errno::EINVAL, c"no name or no output pointer").report();
    }
    // SAFETY: Not null, so valid as the C API demands.
    let name = unsafe {
        *ops = ptr::null_mut();
        CStr::from_char_ptr(name)
    };
    if flags != 0 {
        return Refusal::new(Errno::EBADFLAGS, c"flag not supported")
            .value(flags)
            .report();
    }
    let _noio = NoIo::enter();
    // SAFETY: C calls this on an open object.
    let domain = match unsafe { domain::object(fid) } {
        Ok(domain) => domain.provider(),
        Err(refusal) => return refusal.report(),
    };
    let table = match domain.dma() {
        Some(_) if name == dma::NAME => Some(dma::OPS.as_ptr().cast()),
        _ if name == raw::NAME => Some(raw::OPS.as_ptr().cast()),
        _ if name == reserve::NAME => Some(reserve::OPS.as_ptr().cast()),
        _ => domain.extension(name).map(NonNull::as_ptr),
    };
    match table {
        Some(table) => {
            // SAFETY: As above.
            unsafe { *ops = table };
            0
        }
        None => Refusal::new(Errno::ENOSYS, c"no extension of that name").report(),
    }
}
