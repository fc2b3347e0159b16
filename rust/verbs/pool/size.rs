// SPDX-License-Identifier: GPL-2.0

//! The sizes of kept device regions: powers of two, in pages, and the length of these pages.

use kernel::page::PAGE_SIZE;
use rdma::{
    mr::Kind,
    sg::Layout, //
};

/// Sizes from one page to 2^(SIZES - 1), more than any device has.
const SIZES: usize = 20;

/// The classes of pages, then those of large pages.
pub(super) const CLASSES: usize = 2 * SIZES;

/// Most pages of a region.
pub(crate) const MAX_PAGES: u32 = 1 << (SIZES - 1);

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(usize);

impl Size {
    /// Returns the smallest class that holds this many pages, no large ones; `None` if there is
    /// none.
    pub(super) fn of(pages: u32) -> Option<Self> {
        let class = usize::try_from(pages.checked_next_power_of_two()?.trailing_zeros()).ok()?;
        (class < SIZES).then_some(Self(class))
    }

    /// Returns the class as [`of`](Self::of) does, for regions of this kind; `None` also if none of
    /// the kind are kept.
    pub(super) fn of_kind(kind: Kind, pages: u32) -> Option<Self> {
        let Self(class) = Self::of(pages)?;
        match kind {
            Kind::Pages => Some(Self(class)),
            Kind::LargePages => Some(Self(class + SIZES)),
            Kind::Gaps => None,
        }
    }

    /// Returns the kind of the regions.
    pub(super) fn kind(self) -> Kind {
        match self.0 < SIZES {
            true => Kind::Pages,
            false => Kind::LargePages,
        }
    }

    /// Returns the class of this number, from 0.
    pub(super) const fn of_class(class: usize) -> Self {
        Self(class)
    }

    /// Returns the number of the class.
    pub(super) const fn class(self) -> usize {
        self.0
    }

    /// Returns the number of machine pages that are as long as a region of this class. The device
    /// has at most `max_pages`.
    pub(super) fn machine_pages(self, max_pages: u32) -> u32 {
        // CAST: Both are small.
        const PER_LARGE: u32 = (Layout::LARGE as usize).div_ceil(PAGE_SIZE) as u32;
        match self.kind() {
            Kind::LargePages => self.pages(max_pages).saturating_mul(PER_LARGE),
            _ => self.pages(max_pages),
        }
    }

    /// Returns the number of pages, of its kind, that a region of this class has. The device has at
    /// most `max_pages`.
    pub(super) fn pages(self, max_pages: u32) -> u32 {
        u32::try_from(self.0 % SIZES)
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

    #[test]
    fn of_either_kind() {
        let sizes = [1, 4, MAX_PAGES].map(Size::of);
        let large = [1, 4, MAX_PAGES].map(|pages| Size::of_kind(Kind::LargePages, pages));
        for (size, large) in sizes.iter().flatten().zip(large.iter().flatten()) {
            assert_eq!(size.kind(), Kind::Pages);
            assert_eq!(large.kind(), Kind::LargePages);
            assert_eq!(size.pages(u32::MAX), large.pages(u32::MAX));
            assert!(size != large && large.class() < CLASSES);
            assert_eq!(size.machine_pages(8), size.pages(8));
            assert!(large.machine_pages(8) >= large.pages(8));
            let again = Size::of_kind(Kind::Pages, size.pages(u32::MAX));
            assert_eq!(again, Some(*size));
        }
        assert!(large.iter().all(Option::is_some));
        assert_eq!(Size::of_kind(Kind::Gaps, 1), None);
    }
}
