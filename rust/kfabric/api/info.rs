// SPDX-License-Identifier: GPL-2.0

//! Allocating, copying and freeing infos, as C calls it.

use crate::{
    object::info::Info,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr;
use kfi_bindings::kfi_info;

/// `kfi_allocinfo()`. May sleep.
///
/// # Safety
///
/// None; it is unsafe since C declares it.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_allocinfo() -> *mut kfi_info {
    Info::new().map_or(ptr::null_mut(), Info::into_raw)
}

/// `kfi_dupinfo()`. May sleep.
///
/// # Safety
///
/// `info` is null, an error pointer, or valid with all that it points to.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_dupinfo(info: *const kfi_info) -> *mut kfi_info {
    if Errno::is_in(info) {
        Refusal::new(Errno::EINVAL, c"info is an error pointer").report();
        return ptr::null_mut();
    }
    // SAFETY: `info` is no error pointer, so null or valid by the requirements of this function.
    match unsafe { info.as_ref() } {
        None => Info::new().map_or(ptr::null_mut(), Info::into_raw),
        // SAFETY: All that `info` points to is null or valid, by the requirements of this function.
        Some(info) => unsafe { Info::duplicate(info) }.map_or(ptr::null_mut(), Info::into_raw),
    }
}

/// `kfi_freeinfo()`: frees the whole list. Process context.
///
/// # Safety
///
/// `info` is null, an error pointer, or came from one of the functions of this file or of getinfo.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_freeinfo(info: *mut kfi_info) {
    if Errno::is_in(info) {
        Refusal::new(Errno::EINVAL, c"info is an error pointer").report();
        return;
    }
    // SAFETY: `info` is no error pointer, so null or the caller's, by the requirements of this function.
    drop(unsafe { Info::from_raw(info) });
}

crate::support::table::declared_in_c!(kfi_allocinfo, kfi_dupinfo, kfi_freeinfo);
