// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the check for scatterlists that can be handed on.

#[kernel::macros::kunit_tests(kfabric_plain_list)]
mod tests {
    use super::super::slow::*;
    use crate::{
        region::{
            extents::*,
            segment_list::SegmentList, //
        },
        support::random::Prng, //
    };
    use kernel::page::PAGE_SIZE;
    use kfi_bindings::{
        bio_vec,
        scatterlist, //
    };

    fn is_plain_list(sgl: &[scatterlist]) -> Result<bool> {
        // SAFETY: The slice has `len()` entries, and stays as it is.
        let source = Source::Sgl(unsafe { SegmentList::from_raw(sgl.as_ptr(), sgl.len()) }?);
        Ok(source.plain_list().is_some())
    }

    /// Checks that a scatterlist of pages can be handed on, however many they are, if no two are
    /// neighbours. It can't if two are, if one is shorter, or if the last entry isn't marked as the
    /// last.
    #[test]
    fn plain_lists() -> Result {
        const ORDER: u32 = 7;
        let mut rng = Prng::new("kfabric_plain_list.plain_lists");
        // SAFETY: May be called with any order; the pages are freed below.
        let row = unsafe { kernel::bindings::alloc_pages(kernel::bindings::GFP_KERNEL, ORDER) };
        if row.is_null() {
            return Err(ENOMEM);
        }
        let result = (|| {
            let mut sgl = KVec::new();
            // Every other one, from behind.
            for page in (0..1_usize << ORDER).rev().step_by(2) {
                let bvec = bio_vec {
                    bv_page: row.wrapping_add(page).cast(),
                    bv_offset: 0,
                    bv_len: u32::try_from(PAGE_SIZE)?,
                };
                let mut frame = 0;
                // SAFETY: `bvec` is valid. The helper finds a bad page without reading it.
                assert!(unsafe { kfi_bindings::kfi_helper_bvec_pfn(&bvec, &mut frame) });
                // SAFETY: Any address may be asked for.
                let at = unsafe { kfi_bindings::kfi_helper_linear_address(frame * PAGE) };
                let entry = scatterlist {
                    dma_address: widen(at.addr()),
                    dma_length: bvec.bv_len,
                    ..Default::default()
                };
                sgl.push(entry, GFP_KERNEL)?;
                assert!(!is_plain_list(&sgl)?);
                let last = sgl.len() - 1;
                let with = |sgl: &mut [scatterlist], which, change: fn(&mut scatterlist)| {
                    sgl.get_mut(which).map(change).ok_or(EINVAL)
                };
                with(&mut sgl, last, |last| last.page_link = END)?;
                assert!(is_plain_list(&sgl)?);
                let some = rng.index(sgl.len());
                with(&mut sgl, some, |some| some.dma_length -= 1)?;
                assert!(!is_plain_list(&sgl)?);
                with(&mut sgl, some, |some| some.dma_length += 1)?;
                // The second one is behind the first.
                with(&mut sgl, 0, |first| first.dma_address -= 3 * PAGE)?;
                assert_eq!(is_plain_list(&sgl)?, last == 0);
                with(&mut sgl, 0, |first| first.dma_address += 3 * PAGE)?;
                with(&mut sgl, last, |last| last.page_link = 0)?;
            }
            Ok(())
        })();
        // SAFETY: Allocated with this order, and used no more.
        unsafe { kernel::bindings::__free_pages(row, ORDER) };
        result
    }
}
