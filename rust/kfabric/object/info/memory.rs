// SPDX-License-Identifier: GPL-2.0

//! The memory of infos: of kmalloc, as C frees it.

use crate::support::errno::Errno;
use core::ptr;
use kernel::{
    bindings,
    ffi::{
        c_char,
        c_void, //
    },
    prelude::*, //
};

/// Frees kmalloc memory.
///
/// # Safety
///
/// `memory` is null or kmalloc memory that nobody uses any more.
pub(crate) unsafe fn free<T>(memory: *mut T) {
    // SAFETY: By the requirements of this function.
    unsafe { bindings::kfree(memory.cast()) };
}

/// Zeroed memory, which is C's to free.
pub(crate) fn zeroed<T: pin_init::Zeroable>() -> Result<*mut T, Errno> {
    Ok(KBox::into_raw(
        KBox::<T>::init(pin_init::init_zeroed(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
    ))
}

/// A copy of a string, null of null.
///
/// # Safety
///
/// `from` is null or a string.
pub(crate) unsafe fn string(from: *const c_char) -> Result<*mut c_char, Errno> {
    // SAFETY: By the requirements of this function; kstrdup takes null.
    let copy = unsafe { bindings::kstrdup(from, bindings::GFP_KERNEL) };
    match copy.is_null() && !from.is_null() {
        true => Err(Errno::ENOMEM),
        false => Ok(copy),
    }
}

/// A copy of `len` bytes, null of null or none.
///
/// # Safety
///
/// `from` is null or has `len` bytes.
pub(crate) unsafe fn bytes(from: *const c_void, len: usize) -> Result<*mut c_void, Errno> {
    if from.is_null() || len == 0 {
        return Ok(ptr::null_mut());
    }
    // SAFETY: By the requirements of this function.
    let copy = unsafe { bindings::kmemdup_noprof(from, len, bindings::GFP_KERNEL) };
    match copy.is_null() {
        true => Err(Errno::ENOMEM),
        false => Ok(copy),
    }
}

/// A copy of a struct, null of null. `disown` clears what the copy must not share.
///
/// # Safety
///
/// `from` is null or valid.
pub(super) unsafe fn structure<T>(
    from: *const T,
    disown: impl FnOnce(&mut T),
) -> Result<*mut T, Errno> {
    // SAFETY: By the requirements of this function.
    let copy = unsafe { bytes(from.cast(), size_of::<T>()) }?.cast::<T>();
    // SAFETY: Null, or a fresh copy of a valid value.
    if let Some(copy) = unsafe { copy.as_mut() } {
        disown(copy);
    }
    Ok(copy)
}
