// SPDX-License-Identifier: GPL-2.0

//! Tests of building lists.

#[kernel::macros::kunit_tests(rdma_sg_list)]
mod tests {
    use super::super::*;
    use core::ptr::NonNull;

    /// Four pages in a row.
    struct Row(NonNull<bindings::page>);

    impl Row {
        fn new() -> Result<Self> {
            // SAFETY: May be called with any order.
            let page = unsafe { bindings::alloc_pages(bindings::GFP_KERNEL, 2) };
            Ok(Self(NonNull::new(page).ok_or(ENOMEM)?))
        }

        fn run(&self, page: usize, offset: usize, len: usize) -> Run {
            // SAFETY: The row has four pages.
            let phys =
                unsafe { rdma_bindings::rdma_helper_page_phys(self.0.as_ptr().add(page % 4)) };
            // SAFETY: The run is inside of the row, and no list of a test outlives that.
            unsafe { Run::new(phys + offset as u64, len as u64) }
        }
    }

    impl Drop for Row {
        fn drop(&mut self) {
            // SAFETY: Allocated with this order.
            unsafe { bindings::__free_pages(self.0.as_ptr(), 2) };
        }
    }

    fn cut<const N: usize>(max_segment: usize, runs: [Run; N]) -> Result<SgList> {
        let mut list = SgBuilder::cut(u32::try_from(max_segment)?, true, 1, None)?;
        list.append(&runs)?;
        list.done()
    }

    /// Offset and length of the entries.
    fn entries(list: &SgList) -> Result<KVec<(usize, usize)>> {
        let mut all = KVec::new();
        let mut entry = list.as_raw();
        for _ in 0..list.count() {
            // SAFETY: The list has that many entries.
            let (offset, length) = unsafe { ((*entry).offset, (*entry).length) };
            let both = (usize::try_from(offset)?, usize::try_from(length)?);
            all.push(both, GFP_KERNEL)?;
            // SAFETY: `entry` is one of the list, which has that many.
            entry = unsafe { bindings::sg_next(entry) };
        }
        Ok(all)
    }

    const PAGE: usize = kernel::page::PAGE_SIZE;

    #[test]
    fn what_follows_is_joined() -> Result {
        let row = Row::new()?;
        let list = cut(
            4 * PAGE,
            [
                row.run(0, 100, PAGE - 100),
                row.run(1, 0, PAGE),
                row.run(2, 0, 50),
                row.run(2, 50, 50),
            ],
        )?;
        assert_eq!(entries(&list)?.as_slice(), [(100, 2 * PAGE)]);
        Ok(())
    }

    #[test]
    fn entries_are_cut_at_pages() -> Result {
        let row = Row::new()?;
        // The last run begins inside a page, and is one too many.
        let list = cut(
            2 * PAGE,
            [
                row.run(0, 100, PAGE - 100),
                row.run(1, 0, PAGE),
                row.run(2, 0, 50),
                row.run(2, 50, PAGE - 50),
                row.run(3, 0, 7),
            ],
        )?;
        let cuts = [(100, 2 * PAGE - 100), (0, PAGE + 7)];
        assert_eq!(entries(&list)?.as_slice(), cuts);
        Ok(())
    }

    #[test]
    fn a_gap_is_no_page_boundary() -> Result {
        let row = Row::new()?;
        let list = cut(PAGE, [row.run(0, 0, 100), row.run(0, 200, 100)])?;
        assert_eq!(entries(&list)?.as_slice(), [(0, 100), (200, 100)]);
        Ok(())
    }
}
