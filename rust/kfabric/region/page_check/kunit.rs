// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the check whether a page may be registered.

#[kernel::macros::kunit_tests(kfabric_page_check)]
mod tests {
    use crate::region::page_check::*;

    #[test]
    fn every_refusal_has_words_of_its_own() {
        let other = refusal(kfi_helper_refused::MAX);
        for refused in NULL..=FREE {
            assert_ne!(refusal(refused).why(), other.why());
            for before in NULL..refused {
                assert_ne!(refusal(refused).why(), refusal(before).why());
            }
        }
    }

    #[test]
    fn no_frame_is_so_large() {
        // SAFETY: Any page frame may be asked about.
        let refused = unsafe { kfi_bindings::kfi_helper_check_page(u64::MAX >> 12, false, false) };
        assert_eq!(refused, NO_PAGE);
    }
}
