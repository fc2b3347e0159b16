// SPDX-License-Identifier: GPL-2.0

//! Building a scatterlist from memory.
//!
//! MERGED sg/run.rs
//! What scatterlists are built from.
//!
//! MERGED sg/filling.rs
//! Filling the entries of a table.

use kernel::{
    bindings,
    error::to_result,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::aref::ARef, //
};

use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ptr::{
        null_mut,
        NonNull, //
    },
    slice, //
};

use super::table::{
    SpareTable,
    Table, //
};
use crate::device::Device;

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

    /// Adds entries that `fill` fills. It gets the length that they have at most, whether they are to hold
    /// addresses of the linear map, as if mapped for the device, or pages, and room for them. It returns how many
    /// entries it has filled. [`ENOMEM`] without memory for an entry. May sleep.
    ///
    /// # Safety
    ///
    /// `fill` must have written so many, from the first on, no longer than it was told, and not empty. The
    /// memory must stay until each region made of it has been closed.
    pub unsafe fn fill(
        &mut self,
        fill: impl FnOnce(u32, bool, &mut [MaybeUninit<bindings::scatterlist>]) -> usize,
    ) -> Result {
        // SAFETY: By the requirements of this function.
        unsafe { self.filling.fill(fill) }
    }

    /// The list. [`EINVAL`] if it is empty.
    #[inline]
    pub fn done(self) -> Result<SgList> {
        // INVARIANT: Just filled.
        Ok(SgList {
            table: self.filling.done()?,
        })
    }
}

impl SgList {
    /// Are the entries as if they had been mapped for a device that takes kernel addresses?
    pub(super) fn is_virt(&self) -> bool {
        self.table.head().virt
    }

    /// The number of entries.
    pub fn count(&self) -> u32 {
        self.table.head().used
    }

    /// So many entries are mapped now, in this direction, as C has it.
    pub(super) fn set_mapped(&mut self, count: u32, dir: u32) {
        let head = self.table.head_mut();
        (head.mapped, head.dir) = (count, dir);
    }

    /// It is mapped for this device now.
    pub(super) fn set_device(&mut self, device: ARef<Device>) {
        // INVARIANT: The reference is the list's, which had none.
        self.table.head_mut().device = ARef::into_raw(device).as_ptr().cast();
    }

    /// The device that it is mapped for, if it has one.
    pub(super) fn device(&self) -> Option<&Device> {
        // SAFETY: By the type invariant it is null or a device, which stays as long as the reference.
        unsafe { self.table.head().device.cast::<Device>().as_ref() }
    }

    /// The same; it has none any more.
    pub(super) fn take_device(&mut self) -> Option<ARef<Device>> {
        let device = mem::replace(&mut self.table.head_mut().device, null_mut());
        // SAFETY: By the type invariant it is a reference, which was taken out.
        NonNull::new(device.cast()).map(|device| unsafe { ARef::from_raw(device) })
    }

    /// The direction in which it is mapped, as C has it.
    pub(super) fn direction(&self) -> u32 {
        self.table.head().dir
    }

    /// How many entries are mapped.
    pub(super) fn mapped(&self) -> u32 {
        self.table.head().mapped
    }

    /// The first entry.
    pub(super) fn as_raw(&self) -> *mut bindings::scatterlist {
        self.table.first()
    }
}

/// A run of contiguous memory.
///
/// # Invariants
///
/// These are physical addresses, not none, each of which has a `struct page`. The memory stays until
/// the region made of it has been closed: a device doesn't know lifetimes.
#[repr(transparent)]
pub struct Run(rdma_bindings::rdma_helper_run);

impl Run {
    /// Takes contiguous memory.
    ///
    /// # Safety
    ///
    /// `phys` and `len`, not 0, must be a range of physical addresses, each of which has a
    /// `struct page`, and the memory must stay until each region made of it has been closed.
    pub const unsafe fn new(phys: u64, len: u64) -> Self {
        // INVARIANT: By the requirements of this function.
        Self(rdma_bindings::rdma_helper_run { phys, len })
    }

    /// Its first address.
    pub(super) const fn phys(&self) -> u64 {
        self.0.phys
    }

    /// Its length in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.0.len
    }

    /// All of a page.
    ///
    /// # Safety
    ///
    /// The page must stay until each region made of it has been closed.
    pub(crate) unsafe fn of_page(page: &Page) -> Self {
        // SAFETY: `page` is there.
        let phys = unsafe { rdma_bindings::rdma_helper_page_phys(page.as_ptr()) };
        // CAST: No page is that big.
        let len = PAGE_SIZE as u64;
        // SAFETY: A page has a `struct page`; it stays, as the caller promises.
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
