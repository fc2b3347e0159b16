// SPDX-License-Identifier: GPL-2.0

//! Unit tests of adding up: random lists, beside what is found segment by segment.

#[kernel::macros::kunit_tests(kfabric_tally)]
mod tests {
    use crate::{
        region::segment_list::{
            SegmentList,
            *, //
        },
        support::random::Prng, //
    };
    use kfi_bindings::scatterlist;

    /// The result for a list: length, pages, gap, number of segments; or the refusal.
    type Said = Result<(u64, u64, Option<usize>, usize), Refusal>;

    fn said<T>(list: &[T], add: impl Fn(&mut Sum, &[T]) -> Result<(), Refusal>) -> Said {
        let mut sum = Sum::default();
        add(&mut sum, list)?;
        let shape = sum.shape();
        Ok((shape.bytes(), shape.pages(), shape.gap(), shape.segments()))
    }

    fn agrees<T: Segment>(list: &[T]) {
        assert_eq!(said(list, add), said(list, T::push));
    }

    /// Makes the address and length of a segment, which mostly starts and ends at page boundaries.
    fn random(rng: &mut Prng, end: u64) -> (u64, u64) {
        let start = match rng.below(12) {
            0..=2 => end,
            3 => rng.below(1 << 20),
            4 => 0,
            5 => 0_u64.wrapping_sub(PAGE * rng.below(3)),
            _ => PAGE * rng.below(1 << 10),
        };
        let len = match rng.below(24) {
            0 => 0,
            1 => rng.below(3 * PAGE),
            2 => PAGE - start % PAGE,
            3 => 1 << 63,
            _ => PAGE * (1 + rng.below(3)),
        };
        (start, len)
    }

    #[test]
    fn random_lists() -> Result {
        let mut rng = Prng::new("kfabric_tally.random_lists");
        for _ in 0..1000 {
            let (mut kvecs, mut spans, mut end) = (KVec::new(), KVec::new(), 0);
            for _ in 0..=rng.below(12) {
                let (start, len) = random(&mut rng, end);
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

    /// Makes a list of these entries in two parts. The second part, from entry `chain` on, is
    /// somewhere else.
    fn scattered(spans: &[kfi_helper_sg_span], chain: usize) -> Result<[KVec<scatterlist>; 2]> {
        let mut parts = [KVec::new(), KVec::new()];
        let [first, second] = &mut parts;
        for (index, span) in spans.iter().enumerate() {
            let entry = scatterlist {
                dma_address: span.addr,
                dma_length: span.len,
                ..Default::default()
            };
            let part = if index < chain {
                &mut *first
            } else {
                &mut *second
            };
            part.push(entry, GFP_KERNEL)?;
        }
        if let Some(last) = second.last_mut() {
            last.page_link |= 2;
        }
        let link = scatterlist {
            page_link: second.as_ptr().addr() | 1,
            ..Default::default()
        };
        first.push(link, GFP_KERNEL)?;
        Ok(parts)
    }

    #[test]
    fn random_scatterlists() -> Result {
        let mut rng = Prng::new("kfabric_tally.random_scatterlists");
        for _ in 0..500 {
            let (mut spans, mut end) = (KVec::new(), 0);
            for _ in 0..2 + rng.below(40) {
                let (addr, len) = random(&mut rng, end);
                let len = u32::try_from(len).unwrap_or(1 << 31);
                end = addr.wrapping_add(u64::from(len));
                spans.push(kfi_helper_sg_span { addr, len }, GFP_KERNEL)?;
            }
            let chain = 1 + rng.index(spans.len() - 1);
            let [list, _rest] = scattered(&spans, chain)?;
            // One more than there are: the list ends early.
            for (count, early) in [(spans.len(), false), (spans.len() + 1, true)] {
                // SAFETY: The list is there, and its end is marked.
                let list = unsafe { SegmentList::from_raw(list.as_ptr(), count) }?;
                let found = Source::Sgl(list)
                    .shape(usize::MAX)
                    .map(|shape| (shape.bytes(), shape.pages(), shape.gap(), shape.segments()));
                match said(&spans, Segment::push) {
                    Ok(_) if early => assert!(found.is_err()),
                    slow => assert_eq!(found, slow),
                }
            }
        }
        Ok(())
    }

    #[test]
    fn random_pages() -> Result {
        let mut rng = Prng::new("kfabric_tally.random_pages");
        // SAFETY: May be called with any order; the pages are freed below.
        let row = unsafe { kernel::bindings::alloc_pages(kernel::bindings::GFP_KERNEL, 4) };
        if row.is_null() {
            return Err(ENOMEM);
        }
        let result = (|| {
            for _ in 0..1000 {
                let mut list = KVec::new();
                for _ in 0..=rng.below(12) {
                    let (start, len) = random(&mut rng, 0);
                    let page = match rng.below(10) {
                        0 => core::ptr::null_mut(),
                        1 => row.wrapping_byte_add(8),
                        _ => row.wrapping_add(rng.index(14)),
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
