// SPDX-License-Identifier: GPL-2.0

//! Building scatterlists from memory or from mapped addresses.

use super::table::{
    SpareTable,
    Table, //
};
use crate::prelude::*;
use core::{
    mem::MaybeUninit,
    slice, //
};
use kernel::page::{
    Page,
    PAGE_SIZE, //
};

/// A run of contiguous memory.
///
/// # Invariants
///
/// The addresses are a non-empty range of physical memory with a `struct page` each. The memory
/// stays valid until the region made of it has been closed.
#[repr(transparent)]
pub struct Run(pub(super) rdma_bindings::rdma_helper_run);

impl Run {
    /// Creates a run of contiguous memory.
    ///
    /// # Safety
    ///
    /// - `phys` and `len`, not 0, must be a range of physical addresses that have a `struct page`.
    /// - The memory must stay valid until all regions made of it have been closed.
    pub const unsafe fn new(phys: u64, len: u64) -> Self {
        // INVARIANT: The range is valid memory with pages by the function's contract.
        Self(rdma_bindings::rdma_helper_run { phys, len })
    }

    /// Creates a run of a whole page.
    ///
    /// # Safety
    ///
    /// The page must stay until each region made of it has been closed.
    pub(crate) unsafe fn of_page(page: &Page) -> Self {
        // SAFETY: `page` is valid as a reference.
        let phys = unsafe { rdma_bindings::rdma_helper_page_phys(page.as_ptr()) };
        // CAST: No page is that big.
        let len = PAGE_SIZE as u64;
        // SAFETY: A page has a `struct page`, and stays valid until the region is closed by the
        // function's contract.
        unsafe { Self::new(phys, len) }
    }
}

/// A builder of a scatterlist, which adds entries from the first one on.
///
/// # Invariants
///
/// `cursor` is at the end of the filled entries of `table`.
pub struct SgBuilder {
    table: Table,
    cursor: rdma_bindings::rdma_helper_sg_cursor,
}

impl SgBuilder {
    /// Begins a list of about `expected` entries for memory that [`map`](Self::map) maps for
    /// `device`. Allocates entries as they are needed, unless `spare` has them. Returns [`ENOMEM`]
    /// without memory for the first. May sleep.
    #[inline]
    pub fn new(device: &Device, expected: usize, spare: Option<&SpareTable>) -> Result<Self> {
        let virt = device.is_software();
        Self::begin(device.max_segment_size(), virt, expected, spare)
    }

    /// Begins a list of about `expected` entries, each of at most `max_segment` bytes or a page.
    /// With `virt` the entries are those of a mapping for a device that takes kernel addresses, and
    /// the list is short-lived. May sleep.
    #[inline]
    pub(super) fn begin(
        max_segment: u32,
        virt: bool,
        expected: usize,
        spare: Option<&SpareTable>,
    ) -> Result<Self> {
        let table = Table::get(u32::try_from(expected).unwrap_or(u32::MAX), virt, spare)?;
        let cursor = rdma_bindings::rdma_helper_sg_cursor {
            chunk: table.as_raw(),
            filled: 0,
            count: 0,
            last: null_mut(),
            max_seg: u32::try_from(PAGE_SIZE)?.max(max_segment),
            virt,
        };
        // INVARIANT: The cursor is at the beginning of the table, which has no filled entries.
        Ok(Self { table, cursor })
    }

    /// Adds an entry for a run, without joining it with others. May sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`] if the run is longer than an entry can be.
    /// - [`ENOMEM`] without memory for an entry.
    pub fn push(&mut self, run: &Run) -> Result {
        let bytes = u32::try_from(run.0.len)?;
        // SAFETY: `cursor` belongs to `table`, which is valid. The memory of `run` has pages by its
        // type invariant.
        to_result(unsafe {
            rdma_bindings::rdma_helper_sg_push(&mut self.cursor, run.0.phys, bytes)
        })
    }

    /// Adds entries that `fill` writes. The arguments of `fill` are the maximum length of an entry,
    /// whether entries hold addresses of the linear map or pages, and the free entries. `fill`
    /// returns the number of entries written. Returns [`ENOMEM`] without memory for an entry. May
    /// sleep.
    ///
    /// # Safety
    ///
    /// `fill` must write as many entries as it returns, from the first on, not empty and not longer
    /// than the maximum. The memory must stay valid until all regions made of it have been closed.
    pub unsafe fn fill(
        &mut self,
        fill: impl FnOnce(u32, bool, &mut [MaybeUninit<bindings::scatterlist>]) -> usize,
    ) -> Result {
        let mut first = null_mut();
        // SAFETY: `cursor` belongs to `table`, which is valid.
        let count = unsafe { rdma_bindings::rdma_helper_sg_room(&mut self.cursor, &mut first) };
        let first = NonNull::new(first).ok_or(ENOMEM)?.cast();
        // SAFETY: `first` has space for `count` entries of the table, which only this builder uses.
        let room = unsafe { slice::from_raw_parts_mut(first.as_ptr(), usize::try_from(count)?) };
        let most = room.len();
        let filled = fill(self.cursor.max_seg, self.cursor.virt, room).min(most);
        // SAFETY: `fill` has written `filled` entries by the function's contract.
        unsafe { rdma_bindings::rdma_helper_sg_filled(&mut self.cursor, u32::try_from(filled)?) };
        Ok(())
    }

    /// Adds an entry of device addresses. Returns [`ENOMEM`] without memory for it. May sleep.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn append_dma(&mut self, address: u64, len: u32) -> Result {
        // SAFETY: `cursor` belongs to `table`, which is valid.
        to_result(unsafe {
            rdma_bindings::rdma_helper_sg_append_dma(&mut self.cursor, address, len)
        })
    }

    /// Copies the next `bytes` bytes of a mapped list, and advances `from` by as many. With `virt`
    /// the copy is short-lived. May sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`] if `bytes` is 0 or more than are left, or an empty entry is among them.
    /// - [`ENOMEM`] without memory for an entry.
    ///
    /// # Safety
    ///
    /// `from` must be a place in a valid list.
    pub(super) unsafe fn copy(
        from: &mut rdma_bindings::rdma_helper_sg_source,
        bytes: u64,
        virt: bool,
        spare: Option<&SpareTable>,
    ) -> Result<Table> {
        let mut this = Self::begin(0, virt, usize::try_from(from.left)?, spare)?;
        // SAFETY: `cursor` belongs to `table`, which is valid. `from` is a place in a valid list by
        // the function's contract.
        to_result(unsafe { rdma_bindings::rdma_helper_sg_copy(&mut this.cursor, from, bytes) })?;
        this.done()
    }

    /// Ends the list. Returns its table, which has `used` entries, at least one. The last of them
    /// is marked as the last. Returns [`EINVAL`] if the list is empty.
    #[inline]
    pub(super) fn done(mut self) -> Result<Table> {
        if self.cursor.last.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: `last` is an entry of `table`, which is valid.
        unsafe { rdma_bindings::rdma_helper_sg_end(self.cursor.last) };
        let head = self.table.head_mut();
        (head.used, head.virt) = (self.cursor.count, self.cursor.virt);
        Ok(self.table)
    }
}
