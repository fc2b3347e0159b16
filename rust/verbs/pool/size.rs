// SPDX-License-Identifier: GPL-2.0

//! The sizes of which device regions are kept: powers of two, in pages.

/// Sizes from one page to 2^(CLASSES - 1), more than any device has.
pub(super) const CLASSES: usize = 20;

/// Most pages of a region.
pub(crate) const MAX_PAGES: u32 = 1 << (CLASSES - 1);

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(usize);

impl Size {
    /// The smallest class that holds this many pages; `None` if there is none.
    pub(super) fn of(pages: u32) -> Option<Self> {
        let class = usize::try_from(pages.checked_next_power_of_two()?.trailing_zeros()).ok()?;
        (class < CLASSES).then_some(Self(class))
    }

    /// The class of this number, from 0.
    pub(super) const fn of_class(class: usize) -> Self {
        Self(class)
    }

    /// Its number.
    pub(super) const fn class(self) -> usize {
        self.0
    }

    /// How many pages one of this class has, where the device has no more than `max_pages`.
    pub(super) fn pages(self, max_pages: u32) -> u32 {
        u32::try_from(self.0)
            .ok()
            .and_then(|class| 1u32.checked_shl(class))
            .map_or(max_pages, |pages| pages.min(max_pages))
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_size)]
mod tests {
    use super::*;

    #[test]
    fn up_in_powers_of_two() {
        let pages = |wanted| Size::of(wanted).map(|size| size.pages(512));
        assert_eq!(pages(1), Some(1));
        assert_eq!(pages(2), Some(2));
        assert_eq!(pages(3), Some(4));
        assert_eq!(pages(257), Some(512));
        assert_eq!(pages(512), Some(512));
        assert_eq!(Size::of(400).map(|size| size.pages(500)), Some(500));
        assert_eq!(Size::of(u32::MAX), None);
        assert_eq!(Size::of(1 << 20), None);
    }
}
