// SPDX-License-Identifier: GPL-2.0

//! Building a scatterlist from memory.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use kernel::{
    bindings,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*, //
};

use super::{
    filling::Filling,
    table::{
        SpareTable,
        Table, //
    }, //
};
use crate::device::Device;

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

/// A scatterlist, not yet mapped.
///
/// # Invariants
///
/// The first `used` entries of `table`, not 0, are filled, and the last of them is marked as the end.
pub struct SgList {
    table: Table,
    used: u32,
}

/// A scatterlist that is being built from runs of memory.
pub struct SgBuilder(Filling);

impl SgBuilder {
    /// Begins a list. The entries are allocated as they are needed, unless `spare` has them;
    /// `expected` is about how many. [`ENOMEM`] without memory for the first. May sleep.
    pub fn new(device: &Device, expected: usize, spare: Option<&SpareTable>) -> Result<Self> {
        Self::cut(device.max_segment_size(), expected, spare)
    }

    /// Begins a list whose entries are at most so long, or a page.
    fn cut(max_segment: u32, expected: usize, spare: Option<&SpareTable>) -> Result<Self> {
        Ok(Self(Filling::new(max_segment, expected, spare)?))
    }

    /// Adds runs. Those that follow each other in physical memory become one entry, as far as the
    /// device's segments may be long, and are cut at page boundaries. [`ENOMEM`] without memory for
    /// an entry. May sleep.
    pub fn append(&mut self, runs: &[Run]) -> Result {
        self.0.append(runs)
    }

    /// The list. [`EINVAL`] if it is empty.
    pub fn done(self) -> Result<SgList> {
        let (table, used) = self.0.done()?;
        // INVARIANT: Just filled.
        Ok(SgList { table, used })
    }
}

impl SgList {
    /// The number of entries.
    pub fn count(&self) -> u32 {
        self.used
    }

    /// The first entry.
    pub(super) fn as_raw(&self) -> *mut bindings::scatterlist {
        self.table.first()
    }
}
