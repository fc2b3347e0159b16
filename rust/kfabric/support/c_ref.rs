// SPDX-License-Identifier: GPL-2.0

//! References to objects and strings that C points to.

use crate::prelude::*;

/// Returns a reference to the target of a C pointer; `None` for NULL and error pointers
/// (`IS_ERR_OR_NULL`). Any context.
///
/// # Safety
///
/// `pointer` is null, an error pointer, or valid for `'a`.
#[inline]
pub(crate) unsafe fn c_ref<'a, T>(pointer: *const T) -> Option<&'a T> {
    if Errno::is_in(pointer) {
        return None;
    }
    // SAFETY: `pointer` is no error pointer, so null or valid for `'a`.
    unsafe { pointer.as_ref() }
}

/// Parses the attributes of an object that is being opened. NULL stands for attributes that are all
/// zero. Context: that of `parse`.
///
/// # Errors
///
/// - `EINVAL`: `attr` is an error pointer.
/// - The errors of `parse`.
///
/// # Safety
///
/// `attr` is null, an error pointer, or valid for the call.
pub(crate) unsafe fn parse_attr<T: Zeroable, R>(
    attr: *const T,
    parse: impl FnOnce(&T) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    if Errno::is_in(attr) {
        return Err(Refusal::new(Errno::EINVAL, c"attr is an error pointer"));
    }
    // SAFETY: `attr` is no error pointer, so null or valid for the call.
    match unsafe { attr.as_ref() } {
        Some(attr) => parse(attr),
        None => parse(&pin_init::zeroed()),
    }
}

/// Returns a name, or `None` for NULL. Any context.
///
/// # Safety
///
/// `name` is null or points to a string that is valid for `'a`.
pub(crate) unsafe fn name<'a>(name: *const c_char) -> Option<&'a CStr> {
    // SAFETY: `name` is not null, so it points to a string that is valid for `'a`.
    (!name.is_null()).then(|| unsafe { CStr::from_char_ptr(name) })
}

#[kernel::macros::kunit_tests(kfabric_c_ref)]
mod tests {
    use super::*;

    #[test]
    fn error_pointers_are_not_followed() {
        let value = 5;
        let at = |address: usize| ptr::without_provenance::<i32>(address);
        // SAFETY: Each pointer is null, an error pointer, or points to `value`.
        unsafe {
            for address in [0, usize::MAX, usize::MAX - 4094] {
                assert!(c_ref(at(address)).is_none());
            }
            assert_eq!(c_ref(&raw const value), Some(&5));
        }
    }
}
