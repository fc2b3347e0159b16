// SPDX-License-Identifier: GPL-2.0

//! The device's pages that a region of a mapped list is made of.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use super::dma_list::{
    DmaList,
    SegmentBoundaries, //
};
use crate::device::Device;

/// How a list is cut into pages of a device.
///
/// # Invariants
///
/// The device has pages of `page_size`. The list starts in the first of the machine's pages of one, and at each
/// joint of the list's entries both sides are at the boundary of one.
#[derive(Clone, Copy)]
pub struct Layout {
    page_size: u32,
    pages: u32,
}

impl Layout {
    /// The largest pages for a region that is used once. 2 MiB: larger ones have not been tried with any driver.
    const MAX: u64 = 2 << 20;

    /// The size of the pages of a region of [large pages](crate::mr::Kind::LargePages). What a driver keeps for each of
    /// its pages, as rxe a table, it keeps as long as there is the region.
    pub const LARGE: u32 = 64 << 10;

    /// Larger pages than the machine's, as large as the list allows; [`None`] if there are none, or
    /// if they would win nothing. Any context.
    ///
    /// A device takes the offset in its first page from the low bits of a region's address, which a peer sees. So
    /// the memory has to start in the first of the machine's pages of that page: then the peer sees the
    /// offset in a page of the machine and nothing more.
    #[inline]
    pub fn larger<L: DmaList>(device: &Device, list: &L) -> Option<Self> {
        Self::of(device, list, 0, Self::MAX)
    }

    /// As [`larger`](Self::larger), for a region of large pages, which are all of one size.
    #[inline]
    pub fn large<L: DmaList>(device: &Device, list: &L) -> Option<Self> {
        Self::of(device, list, Self::LARGE.into(), Self::LARGE.into())
    }

    #[inline]
    fn of<L: DmaList>(device: &Device, list: &L, least: u64, most: u64) -> Option<Self> {
        let base = device.page_size()?;
        list.boundaries(base)
            .layout(device.page_sizes(), base, least, most)
    }

    /// The size of a page.
    pub(crate) fn page_size(&self) -> u32 {
        self.page_size
    }

    /// How many pages there are.
    pub fn pages(&self) -> u32 {
        self.pages
    }
}

/// Smaller regions would win nothing.
const MIN_PAGES: u64 = 8;

impl SegmentBoundaries {
    /// The largest pages, of these sizes, larger than `base`, and between `least` and `most`, a power of two, at whose
    /// boundaries all boundaries are, and the page of `base` bytes in which the list starts. Of small pages the list would
    /// have to have `base`; what the large ones have beyond that is no more than an eighth. [`None`] if there are none.
    #[inline]
    pub(super) fn layout(&self, sizes: u64, base: u32, least: u64, most: u64) -> Option<Layout> {
        let base = u64::from(base);
        let small = self.in_pages(base);
        if small < MIN_PAGES * base {
            return None;
        }
        let first = self.start & base.wrapping_neg();
        let (eighth, inner) = (small / 8, self.bits | first | most);
        // No page is larger than all of them together.
        let all = 1_u64.wrapping_shl(small.saturating_add(eighth).checked_ilog2()?);
        let mut size = all.min(inner & inner.wrapping_neg());
        while size > base && size >= least {
            let all = self.in_pages(size);
            if sizes & size != 0 && all.wrapping_sub(small) <= eighth {
                // INVARIANT: Just found.
                return Some(Layout {
                    page_size: u32::try_from(size).ok()?,
                    pages: u32::try_from(all.wrapping_shr(size.trailing_zeros())).ok()?,
                });
            }
            size >>= 1;
        }
        None
    }

    /// The bytes of the pages of this size, a power of two, that it touches.
    #[inline]
    fn in_pages(&self, size: u64) -> u64 {
        let mask = size.wrapping_sub(1);
        let end = (self.start & mask).saturating_add(self.bytes);
        end.saturating_add(mask) & !mask
    }
}
