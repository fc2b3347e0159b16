// SPDX-License-Identifier: GPL-2.0

//! Strings of C that may not be there.

use kernel::{
    ffi::c_char,
    prelude::*,
    str::CStr, //
};

/// A name, if there is one.
///
/// # Safety
///
/// `name` is null or a string that is valid for `'a`.
pub(crate) unsafe fn name<'a>(name: *const c_char) -> Option<&'a CStr> {
    // SAFETY: By the requirements of this function.
    (!name.is_null()).then(|| unsafe { CStr::from_char_ptr(name) })
}
