// SPDX-License-Identifier: GPL-2.0

//! Scatterlists of pages.

use super::{
    call,
    Pages, //
};
use crate::support::errno::Errno;
use kernel::{
    bindings,
    ffi::c_int,
    prelude::*, //
};
use kfi_bindings::scatterlist;

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
        let count = u32::try_from(list.len()).map_err(|_| Errno::E2BIG)?;
        let mut table = bindings::sg_table::default();
        // SAFETY: `list` has `count` pages, and they hold so many bytes.
        let ret = unsafe {
            bindings::sg_alloc_table_from_pages_segment(
                &mut table,
                list.as_mut_ptr(),
                count,
                u32::try_from(pages.offset()).map_err(|_| Errno::EINVAL)?,
                pages.len(),
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
