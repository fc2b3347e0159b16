// SPDX-License-Identifier: GPL-2.0

//! Scatterlists built from memory.

use super::table::{
    SpareTable,
    Table, //
};
use crate::{
    device::Device,
    prelude::*, //
};
use core::{
    mem::MaybeUninit,
    slice, //
};
use kernel::page::{
    Page,
    PAGE_SIZE, //
};

/// A scatterlist, not yet mapped.
///
/// # Invariants
///
/// As many entries of `table` as it has `used`, not 0, are filled, and the last of them is marked as the end.
/// If it is `virt`, they are as if they had been mapped for a device that takes kernel addresses. Its `device` is
/// null, or a reference to one.
pub struct SgList {
    table: Table,
}

/// A scatterlist that is being built.
pub struct SgBuilder {
    filling: Filling,
}

impl SgBuilder {
    /// Begins a list. The entries are allocated as they are needed, unless `spare` has them;
    /// `expected` is about how many. [`ENOMEM`] without memory for the first. May sleep.
    #[inline]
    pub fn new(device: &Device, expected: usize, spare: Option<&SpareTable>) -> Result<Self> {
        let virt = device.is_software();
        Ok(Self {
            filling: Filling::new(device.max_segment_size(), virt, expected, spare)?,
        })
    }

    /// Adds an entry for a run, which doesn't join with others. [`ENOMEM`] without memory for an entry. May
    /// sleep.
    pub fn push(&mut self, run: &Run) -> Result {
        self.filling.push(run)
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
        // SAFETY: `fill` writes valid entries by the function's contract.
        unsafe { self.filling.fill(fill) }
    }

    /// Returns the list, or [`EINVAL`] if it is empty.
    #[inline]
    pub fn done(self) -> Result<SgList> {
        // INVARIANT: `done()` has filled the entries and marked the last.
        Ok(SgList {
            table: self.filling.done()?,
        })
    }
}

impl SgList {
    /// Checks whether the entries are those of a mapping for a device that takes kernel addresses.
    pub(super) fn is_virt(&self) -> bool {
        self.table.head().virt
    }

    /// Returns the number of entries.
    pub fn count(&self) -> u32 {
        self.table.head().used
    }

    /// Notes that `count` entries are mapped in the direction `dir`.
    pub(super) fn set_mapped(&mut self, count: u32, dir: u32) {
        let head = self.table.head_mut();
        (head.mapped, head.dir) = (count, dir);
    }

    /// Notes the device that the list is mapped for.
    pub(super) fn set_device(&mut self, device: ARef<Device>) {
        // INVARIANT: The reference is the list's, which had none.
        self.table.head_mut().device = ARef::into_raw(device).as_ptr().cast();
    }

    /// Returns the device that the list is mapped for, if any.
    pub(super) fn device(&self) -> Option<&Device> {
        // SAFETY: By the type invariant it is null or a device, which stays as long as the reference.
        unsafe { self.table.head().device.cast::<Device>().as_ref() }
    }

    /// Takes the device that the list is mapped for.
    pub(super) fn take_device(&mut self) -> Option<ARef<Device>> {
        let device = mem::replace(&mut self.table.head_mut().device, null_mut());
        // SAFETY: By the type invariant it is a reference, which was taken out.
        NonNull::new(device.cast()).map(|device| unsafe { ARef::from_raw(device) })
    }

    /// Returns the C value of the direction of the mapping.
    pub(super) fn direction(&self) -> u32 {
        self.table.head().dir
    }

    /// Returns the number of mapped entries.
    pub(super) fn mapped(&self) -> u32 {
        self.table.head().mapped
    }

    /// Returns the first entry.
    pub(super) fn as_raw(&self) -> *mut bindings::scatterlist {
        self.table.first()
    }
}

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
        // SAFETY: `page` is there.
        let phys = unsafe { rdma_bindings::rdma_helper_page_phys(page.as_ptr()) };
        // CAST: No page is that big.
        let len = PAGE_SIZE as u64;
        // SAFETY: A page has a `struct page`, and stays valid until the region is closed by the
        // function's contract.
        unsafe { Self::new(phys, len) }
    }
}

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
    /// Begins a list of about `expected` entries, each of at most `max_segment` bytes or a page.
    /// With `virt` the entries are those of a mapping for a device that takes kernel addresses, and
    /// the list is short-lived. May sleep.
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
        let bytes = u32::try_from(run.0.len)?;
        // SAFETY: `cursor` is that of a table that is there; by the invariant of `Run` it has pages.
        to_result(unsafe {
            rdma_bindings::rdma_helper_sg_push(&mut self.cursor, run.0.phys, bytes)
        })
    }

    /// Lets `fill` write entries. Its arguments are the maximum length of an entry, whether entries
    /// hold kernel addresses or pages, and the free entries. It returns the number of entries
    /// written. May sleep.
    ///
    /// # Safety
    ///
    /// `fill` must write as many entries as it returns, from the first on.
    pub(super) unsafe fn fill(
        &mut self,
        fill: impl FnOnce(u32, bool, &mut [MaybeUninit<bindings::scatterlist>]) -> usize,
    ) -> Result {
        let mut first = null_mut();
        // SAFETY: `cursor` is that of a table that is there.
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
    /// - [`EINVAL`]: fewer bytes are left, or an empty entry is among them.
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
        // SAFETY: `cursor` belongs to `table`, which is valid. `from` is a place in a valid list by
        // the function's contract.
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
