// SPDX-License-Identifier: GPL-2.0

//! `kfi_control()` on a domain.

use super::{
    rawkey,
    DomainObject, //
};
use crate::support::errno::Errno;
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::kfid;

/// `kfi_control` of a domain: what there is about raw keys. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
pub(super) unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: C calls this on an open object, with the argument that goes with the command.
    unsafe {
        DomainObject::call(fid, |domain| match u32::try_from(command) {
            Ok(kfi_bindings::KFI_MAP_RAW_MR) => rawkey::map(domain, arg),
            Ok(kfi_bindings::KFI_UNMAP_KEY) => rawkey::unmap(domain, arg),
            _ => Err(Errno::ENOSYS.into()),
        })
    }
}
