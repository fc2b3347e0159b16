// SPDX-License-Identifier: GPL-2.0

//! Unit tests of adding up: random lists, beside what is found segment by segment.

#[kernel::macros::kunit_tests(kfabric_tally)]
mod tests {
    use crate::region::tally::*;
    use crate::support::chance::Chance;
    use kernel::page::PAGE_SIZE;
    use kernel::prelude::*;

    const PAGE: u64 = widen(PAGE_SIZE);

    /// What is said of a list: length, pages, gap, number of segments; or why it is refused.
    type Said = Result<(u64, u64, Option<usize>, usize), Refusal>;

    fn said<T>(list: &[T], add: impl Fn(&mut Shape, &[T]) -> Result<(), Refusal>) -> Said {
        let mut shape = Shape::default();
        add(&mut shape, list)?;
        Ok((shape.bytes(), shape.pages(), shape.gap(), shape.segments()))
    }

    fn agrees<T: Segment>(list: &[T]) {
        assert_eq!(said(list, add), said(list, T::push));
    }

    /// Address and length of a segment, which mostly starts and ends where pages do.
    fn random(chance: &mut Chance, end: u64) -> (u64, u64) {
        let start = match chance.below(12) {
            0..=2 => end,
            3 => chance.below(1 << 20),
            4 => 0,
            5 => 0_u64.wrapping_sub(PAGE * chance.below(3)),
            _ => PAGE * chance.below(1 << 10),
        };
        let len = match chance.below(24) {
            0 => 0,
            1 => chance.below(3 * PAGE),
            2 => PAGE - start % PAGE,
            3 => 1 << 63,
            _ => PAGE * (1 + chance.below(3)),
        };
        (start, len)
    }

    #[test]
    fn random_lists() -> Result {
        let mut chance = Chance::new("kfabric_tally.random_lists");
        for _ in 0..4000 {
            let (mut kvecs, mut spans, mut end) = (KVec::new(), KVec::new(), 0);
            for _ in 0..=chance.below(12) {
                let (start, len) = random(&mut chance, end);
                end = start.wrapping_add(len);
                let kvec = kvec {
                    iov_base: core::ptr::without_provenance_mut(usize::try_from(start)?),
                    iov_len: usize::try_from(len)?,
                };
                kvecs.push(kvec, GFP_KERNEL)?;
                let len = u32::try_from(len).unwrap_or(1 << 31);
                spans.push(kfi_helper_sg_span { addr: start, len }, GFP_KERNEL)?;
            }
            agrees(&kvecs);
            agrees(&spans);
        }
        Ok(())
    }

    #[test]
    fn random_pages() -> Result {
        let mut chance = Chance::new("kfabric_tally.random_pages");
        // SAFETY: May be called with any order; the pages are freed below.
        let row = unsafe { kernel::bindings::alloc_pages(kernel::bindings::GFP_KERNEL, 4) };
        if row.is_null() {
            return Err(ENOMEM);
        }
        let result = (|| {
            for _ in 0..1000 {
                let mut list = KVec::new();
                for _ in 0..=chance.below(12) {
                    let (start, len) = random(&mut chance, 0);
                    let page = match chance.below(10) {
                        0 => core::ptr::null_mut(),
                        1 => row.wrapping_byte_add(8),
                        _ => row.wrapping_add(chance.index(14)),
                    };
                    let bvec = bio_vec {
                        bv_page: page.cast(),
                        bv_offset: u32::try_from(start % (2 * PAGE))?,
                        bv_len: u32::try_from(len).unwrap_or(1 << 31),
                    };
                    list.push(bvec, GFP_KERNEL)?;
                }
                agrees(&list);
            }
            Ok(())
        })();
        // SAFETY: Allocated with this order, and used no more.
        unsafe { kernel::bindings::__free_pages(row, 4) };
        result
    }
}
