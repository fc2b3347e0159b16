// SPDX-License-Identifier: GPL-2.0

//! References to what C points to.

use crate::support::errno::Errno;

/// Returns what a pointer of C's points to; `None` for NULL and for an error pointer (`IS_ERR_OR_NULL`). Any
/// context.
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

#[kernel::macros::kunit_tests(kfabric_c_ref)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn error_pointers_are_not_followed() {
        let value = 5;
        let at = |address: usize| ptr::without_provenance::<i32>(address);
        // SAFETY: Null, error pointers, and a pointer to a value.
        unsafe {
            for address in [0, usize::MAX, usize::MAX - 4094] {
                assert!(c_ref(at(address)).is_none());
            }
            assert_eq!(c_ref(&raw const value), Some(&5));
        }
    }
}
