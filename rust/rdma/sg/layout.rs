// SPDX-License-Identifier: GPL-2.0

//! The device's pages that a region of a mapped list is made of.

use crate::prelude::*;

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
    pub(super) const MAX: u64 = 2 << 20;

    /// Page size of a region of [large pages](crate::mr::Kind::LargePages). Some drivers keep state
    /// for each page of a region, as rxe does, for the lifetime of the region.
    pub const LARGE: u32 = 64 << 10;

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

/// The boundaries between the entries of a mapped list.
pub struct SegmentBoundaries {
    /// The address of the first byte.
    start: u64,
    bytes: u64,
    /// The bitwise OR of all addresses at which one entry ends or another begins.
    bits: u64,
}

impl SegmentBoundaries {
    /// Creates the boundaries of a list with one entry.
    #[inline]
    pub(super) fn none(start: u64, bytes: u64) -> Self {
        Self {
            start,
            bytes,
            bits: 0,
        }
    }

    /// Collects the boundaries of a list. Stops early if none can lie in pages larger than `base`.
    /// Any context.
    ///
    /// # Safety
    ///
    /// `first` must be a list of `count` mapped entries, not 0.
    pub(super) unsafe fn of(first: *mut bindings::scatterlist, count: u32, base: u32) -> Self {
        let mut boundaries = Self::none(0, 0);
        // SAFETY: `first` is a list of `count` mapped entries by the function's contract.
        unsafe {
            rdma_bindings::rdma_helper_sg_joints(
                first,
                count,
                base,
                &mut boundaries.start,
                &mut boundaries.bytes,
                &mut boundaries.bits,
            )
        };
        boundaries
    }

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

#[kernel::macros::kunit_tests(rdma_sg_layout)]
mod tests {
    use super::*;
    use crate::sg::builder::SgBuilder;

    const BASE: u64 = 4096;

    fn fast(
        list: &[(u64, u32)],
        sizes: u64,
        (least, most): (u64, u64),
    ) -> Result<Option<(u64, u64)>> {
        let mut built = SgBuilder::begin(0, false, list.len(), None)?;
        for &(address, len) in list {
            built.append_dma(address, len)?;
        }
        let table = built.done()?;
        let base = u32::try_from(BASE)?;
        // SAFETY: `table` has `used` mapped entries.
        let boundaries = unsafe { SegmentBoundaries::of(table.first(), table.head().used, base) };
        let found = |boundaries: &SegmentBoundaries| {
            let layout = boundaries.layout(sizes, base, least, most);
            layout.map(|layout| (u64::from(layout.page_size), u64::from(layout.pages)))
        };
        if let [(address, len)] = list {
            let alone = SegmentBoundaries::none(*address, u64::from(*len));
            assert_eq!(found(&alone), found(&boundaries));
        }
        Ok(found(&boundaries))
    }

    /// Returns the number of pages of `size` bytes, or `None` if the list cannot be cut into them.
    fn pages(list: &[(u64, u32)], size: u64) -> Option<u64> {
        let (mut pages, mut before) = (0, None);
        let inside = |address: u64| address & (size - 1);
        for &(address, len) in list {
            let end = address + u64::from(len);
            // Behind another entry both sides of the joint must be at a boundary.
            if before.is_some_and(|before| inside(before) != 0 || inside(address) != 0) {
                return None;
            }
            let mut at = address - inside(address);
            while at < end {
                (pages, at) = (pages + 1, at + size);
            }
            before = Some(end);
        }
        Some(pages)
    }

    fn slow(list: &[(u64, u32)], sizes: u64, (least, most): (u64, u64)) -> Option<(u64, u64)> {
        let small = pages(list, BASE)? * BASE;
        if small < 8 * BASE {
            return None;
        }
        (13..=21)
            .rev()
            .map(|shift| 1_u64 << shift)
            .filter(|&size| sizes & size != 0 && (least..=most).contains(&size))
            // All that is seen of the list's address is the offset in a small page.
            .filter(|&size| {
                list.iter()
                    .take(1)
                    .all(|&(start, _)| start & (size - 1) < BASE)
            })
            .find_map(|size| {
                let pages = pages(list, size)?;
                (pages * size <= small + small / 8).then_some((size, pages))
            })
    }

    fn number() -> u64 {
        // SAFETY: May always be called.
        u64::from(unsafe { bindings::get_random_u32() })
    }

    #[test]
    fn random_lists() -> Result {
        let mut seed = number();
        pr_info!("rdma_sg_layout.random_lists: seed {seed:#x}\n");
        let mut below = |end: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % end
        };
        for _ in 0..500 {
            let unit = BASE << below(10);
            let count = 1 + below(5);
            let mut list = KVec::new();
            for i in 0..count {
                let mut address = (1 << 40) + unit * below(1 << 12);
                let mut len = unit * (1 + below(4));
                // Only the list's own ends may be anywhere, but one in eight is somewhere else.
                if i == 0 || below(8) == 0 {
                    let into = [below(unit), BASE * below(unit / BASE), 0];
                    let into = into.get(usize::try_from(below(3))?).copied().unwrap_or(0);
                    (address, len) = (address + into, len - into);
                }
                if i + 1 == count || below(8) == 0 {
                    len -= [below(len), len - len.min(BASE), 0]
                        .get(usize::try_from(below(3))?)
                        .copied()
                        .unwrap_or(0);
                }
                list.push((address, u32::try_from(len)?), GFP_KERNEL)?;
            }
            let sizes = match below(3) {
                0 => 0xffff_f000,
                1 => BASE | 1 << 21,
                _ => BASE | below(1 << 10) << 12,
            };
            let range = match below(2) {
                0 => (0, Layout::MAX),
                _ => (Layout::LARGE.into(), Layout::LARGE.into()),
            };
            if pages(&list, BASE).is_none() {
                // No region of small pages either.
                assert_eq!(fast(&list, sizes, range)?, None);
                continue;
            }
            assert_eq!(fast(&list, sizes, range)?, slow(&list, sizes, range));
        }
        Ok(())
    }
}
