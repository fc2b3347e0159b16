// SPDX-License-Identifier: GPL-2.0

//! Scatterlists of pages.

use super::{
    call,
    Pages, //
};
use crate::support::{
    errno::Errno,
    num::index, //
};
use kernel::{
    bindings,
    ffi::c_int,
    page::PAGE_SIZE,
    prelude::*, //
};
use kfi_bindings::{
    bio_vec,
    scatterlist, //
};

/// A scatterlist of pages.
///
/// # Invariants
///
/// `table` was allocated by `sg_alloc_table_from_pages_segment()`.
pub(super) struct SgTable(bindings::sg_table);

/// Most bytes of an entry: what any device takes that doesn't say otherwise
/// (`dma_get_max_seg_size()`).
const MAX_BYTES: u32 = 64 << 10;

impl SgTable {
    /// Lists the pages; those that follow each other share an entry, as far as devices can take it.
    pub(super) fn new(pages: &Pages) -> Result<Self, Errno> {
        let mut list = KVec::new();
        for page in pages.raw_pages() {
            list.push(page, GFP_KERNEL)?;
        }
        Self::of(&mut list, pages.offset(), pages.len())
    }

    /// The same of memory in bio_vecs.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is a gap, since one that isn't the first begins, or one that isn't the last ends, within
    ///   a page.
    pub(super) fn of_bio_vecs(pieces: &[bio_vec]) -> Result<Self, Errno> {
        let mut list = KVec::new();
        let first = pieces.first().ok_or(Errno::EINVAL)?;
        let first_offset = index(first.bv_offset) % PAGE_SIZE;
        let mut len: usize = 0;
        for piece in pieces {
            let start = index(piece.bv_offset);
            // Each joint is at the end of a page, that of the last piece and this one, too.
            if len > 0 && (start % PAGE_SIZE != 0 || (first_offset + len) % PAGE_SIZE != 0) {
                return Err(Errno::EINVAL);
            }
            let end = start + index(piece.bv_len);
            for number in start / PAGE_SIZE..end.div_ceil(PAGE_SIZE) {
                // The pages of a bio_vec follow each other in the memory map.
                list.push(piece.bv_page.wrapping_add(number), GFP_KERNEL)?;
            }
            len += end - start;
        }
        Self::of(&mut list, first_offset, len)
    }

    /// Of pages which hold `len` bytes from `offset` in the first on.
    fn of(pages: &mut [*mut bindings::page], offset: usize, len: usize) -> Result<Self, Errno> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let count = u32::try_from(pages.len()).map_err(|_| Errno::E2BIG)?;
        let mut table = bindings::sg_table::default();
        // SAFETY: There are `count` pages, and they hold so many bytes.
        let ret = unsafe {
            bindings::sg_alloc_table_from_pages_segment(
                &mut table,
                pages.as_mut_ptr(),
                count,
                u32::try_from(offset).map_err(|_| Errno::EINVAL)?,
                len,
                MAX_BYTES,
                bindings::GFP_KERNEL,
            )
        };
        // INVARIANT: Just allocated.
        call::result(ret).map(|()| Self(table))
    }

    pub(super) fn first(&self) -> *mut scatterlist {
        self.0.sgl
    }

    pub(super) fn entries(&self) -> Result<c_int, Errno> {
        c_int::try_from(self.0.orig_nents).map_err(|_| Errno::E2BIG)
    }
}

impl Drop for SgTable {
    fn drop(&mut self) {
        // SAFETY: By the invariant, and nobody uses it any more.
        unsafe { bindings::sg_free_table(&mut self.0) };
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_sg_table)]
mod tests {
    use super::*;

    /// How many bytes a scatterlist of these pieces, offset and length, of one page after the other has.
    fn bytes(pieces: &[(u32, u32)]) -> Result<usize, Errno> {
        let pages = Pages::zeroed(4 * PAGE_SIZE)?;
        let mut list = KVec::new();
        for (bv_page, (bv_offset, bv_len)) in pages.raw_pages().zip(pieces) {
            let piece = bio_vec {
                bv_page,
                bv_len: *bv_len,
                bv_offset: *bv_offset,
            };
            list.push(piece, GFP_KERNEL)?;
        }
        let table = SgTable::of_bio_vecs(&list)?;
        let (mut sg, mut sum) = (table.first(), 0);
        for _ in 0..table.entries()? {
            // SAFETY: The table has so many entries.
            unsafe {
                sum += index((*sg).length);
                sg = bindings::sg_next(sg);
            }
        }
        Ok(sum)
    }

    #[test]
    fn no_gaps() {
        let page = u32::try_from(PAGE_SIZE).unwrap_or(0);
        assert_eq!(bytes(&[(512, 1024)]), Ok(1024));
        assert_eq!(
            bytes(&[(512, page - 512), (0, page), (0, 7)]),
            Ok(2 * PAGE_SIZE - 505)
        );
        assert_eq!(bytes(&[(512, page - 513), (0, page)]), Err(Errno::EINVAL));
        assert_eq!(bytes(&[(0, page), (1, page - 1)]), Err(Errno::EINVAL));
        assert_eq!(bytes(&[]), Err(Errno::EINVAL));
    }
}
