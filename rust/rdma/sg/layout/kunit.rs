// SPDX-License-Identifier: GPL-2.0

//! Tests of page sizes: random lists, beside what is found size by size and page by page.

#[kernel::macros::kunit_tests(rdma_sg_layout)]
mod tests {
    use super::super::{
        super::list::Filling,
        Layout, //
        SegmentBoundaries,
    };
    use kernel::{
        bindings,
        prelude::*, //
    };

    const BASE: u64 = 4096;

    fn fast(
        list: &[(u64, u32)],
        sizes: u64,
        (least, most): (u64, u64),
    ) -> Result<Option<(u64, u64)>> {
        let mut filling = Filling::new(0, false, list.len(), None)?;
        for &(address, len) in list {
            filling.append_dma(address, len)?;
        }
        let table = filling.done()?;
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
        for _ in 0..2000 {
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
