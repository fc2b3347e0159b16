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
/// The device has pages of `page_size`. The first byte of the list is in the first machine page of
/// a device page. Both sides of each boundary between entries are aligned to `page_size`.
#[derive(Clone, Copy)]
pub struct Layout {
    page_size: u32,
    pages: u32,
}

impl Layout {
    /// The largest pages for a region that is used once. 2 MiB: larger ones have not been tried with any driver.
    const MAX: u64 = 2 << 20;

    /// Page size of a region of [large pages](crate::mr::Kind::LargePages). Some drivers keep state
    /// for each page of a region, as rxe does, for the lifetime of the region.
    pub const LARGE: u32 = 64 << 10;

    /// Returns the largest pages that the list permits, if they are larger than the machine's and
    /// useful. Any context.
    ///
    /// A device takes the offset in its first page from the low bits of a region's address, which a peer sees. So
    /// the memory has to start in the first of the machine's pages of that page: then the peer sees the
    /// offset in a page of the machine and nothing more.
    #[inline]
    pub fn larger<L: DmaList>(device: &Device, list: &L) -> Option<Self> {
        Self::of(device, list, 0, Self::MAX)
    }

    /// Returns the layout for a region of large pages, which have one size. Any context.
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

    /// Returns the size of a page in bytes.
    pub(crate) fn page_size(&self) -> u32 {
        self.page_size
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u32 {
        self.pages
    }
}

/// Smaller regions would win nothing.
const MIN_PAGES: u64 = 8;

impl SegmentBoundaries {
    /// Returns the layout with the largest page size in `sizes` that is more than `base` and from
    /// `least` to `most`. All boundaries and the first page of `base` bytes must be aligned to it.
    /// The large pages may exceed the small ones by an eighth.
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

    /// Returns the size of the pages of `size` bytes, a power of two, that the list touches.
    #[inline]
    fn in_pages(&self, size: u64) -> u64 {
        let mask = size.wrapping_sub(1);
        let end = (self.start & mask).saturating_add(self.bytes);
        end.saturating_add(mask) & !mask
    }
}
