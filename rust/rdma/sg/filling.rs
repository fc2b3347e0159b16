// SPDX-License-Identifier: GPL-2.0

//! Filling the entries of a table.

use kernel::{
    bindings,
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

use core::{
    mem::MaybeUninit,
    ptr::{
        null_mut,
        NonNull, //
    },
    slice, //
};

use super::{
    run::Run,
    table::{
        SpareTable,
        Table, //
    }, //
};

/// A table that is being filled, from the first entry on.
///
/// # Invariants
///
/// `cursor` is one of `table`, and its last entry has been filled, if there is one.
pub(super) struct Filling {
    table: Table,
    cursor: rdma_bindings::rdma_helper_sg_cursor,
}

impl Filling {
    /// Begins a list that becomes about so long, whose entries are at most so long, or a page. For a
    /// device that takes kernel addresses they are `virt`, so as if they had been mapped, and the list
    /// is there for a moment only. May sleep.
    #[inline]
    pub(super) fn new(
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
        // INVARIANT: The cursor is at the beginning of the table.
        Ok(Self { table, cursor })
    }

    /// Adds an entry for a run, which doesn't join with others. [`ENOMEM`] without memory for an entry. [`EINVAL`]
    /// if it is longer than an entry can be. May sleep.
    pub(super) fn push(&mut self, run: &Run) -> Result {
        let bytes = u32::try_from(run.bytes())?;
        // SAFETY: `cursor` is that of a table that is there; by the invariant of `Run` it has pages.
        to_result(unsafe {
            rdma_bindings::rdma_helper_sg_push(&mut self.cursor, run.phys(), bytes)
        })
    }

    /// Has somebody else fill entries. `fill` gets the length that they have at most, whether they hold kernel
    /// addresses, as if mapped for the device, or pages, and room for them. It returns how many it has filled.
    /// May sleep.
    ///
    /// # Safety
    ///
    /// `fill` must have written so many, from the first on.
    pub(super) unsafe fn fill(
        &mut self,
        fill: impl FnOnce(u32, bool, &mut [MaybeUninit<bindings::scatterlist>]) -> usize,
    ) -> Result {
        let mut first = null_mut();
        // SAFETY: `cursor` is that of a table that is there.
        let count = unsafe { rdma_bindings::rdma_helper_sg_room(&mut self.cursor, &mut first) };
        let first = NonNull::new(first).ok_or(ENOMEM)?.cast();
        // SAFETY: There is room for so many, which is the table's, and nobody else's.
        let room = unsafe { slice::from_raw_parts_mut(first.as_ptr(), usize::try_from(count)?) };
        let most = room.len();
        let filled = fill(self.cursor.max_seg, self.cursor.virt, room).min(most);
        // SAFETY: So many were written, by the requirements of this function.
        unsafe { rdma_bindings::rdma_helper_sg_filled(&mut self.cursor, u32::try_from(filled)?) };
        Ok(())
    }

    /// Adds an entry of addresses of a device. [`ENOMEM`] without memory for it. May sleep.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn append_dma(&mut self, address: u64, len: u32) -> Result {
        // SAFETY: `cursor` is that of a table that is there.
        to_result(unsafe {
            rdma_bindings::rdma_helper_sg_append_dma(&mut self.cursor, address, len)
        })
    }

    /// Adds the next bytes of a list that is mapped, which goes on there. May sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`]: there are not so many, or an entry of no length lies in the way.
    /// - [`ENOMEM`]: without memory for an entry.
    ///
    /// # Safety
    ///
    /// `from` must be a place in a valid list.
    pub(super) unsafe fn copy(
        &mut self,
        from: &mut rdma_bindings::rdma_helper_sg_source,
        bytes: u64,
    ) -> Result {
        // SAFETY: `cursor` is that of a table that is there, and the caller vouches for `from`.
        to_result(unsafe { rdma_bindings::rdma_helper_sg_copy(&mut self.cursor, from, bytes) })
    }

    /// Ends the list: its table, whose last entry is marked, and which knows the number of entries, not 0.
    /// [`EINVAL`] if there are none.
    #[inline]
    pub(super) fn done(mut self) -> Result<Table> {
        if self.cursor.last.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: The cursor's last entry is one of the table's.
        unsafe { rdma_bindings::rdma_helper_sg_end(self.cursor.last) };
        let head = self.table.head_mut();
        (head.used, head.virt) = (self.cursor.count, self.cursor.virt);
        Ok(self.table)
    }
}
