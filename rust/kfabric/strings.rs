// SPDX-License-Identifier: GPL-2.0

//! `kfi_version()`, `kfi_strerror()` and `kfi_tostr()`.

use kernel::ffi::{c_char, c_int, c_void};

/// `kfi_version()`: the version of the API. Any context.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_version() -> u32 {
    crate::API_VERSION
}

/// `kfi_strerror()`.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_strerror(_errnum: c_int) -> *const c_char {
    c"todo".as_ptr().cast()
}

/// `kfi_tostr()`.
///
/// # Safety
///
/// x
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_tostr(_data: *const c_void, _t: kfi_bindings::kfi_type) -> *mut c_char {
    core::ptr::null_mut()
}

crate::table::declared_in_c!(kfi_strerror, kfi_tostr, kfi_version);
