// SPDX-License-Identifier: GPL-2.0

//! What scatterlists are built from.

use kernel::page::{
    Page,
    PAGE_SIZE, //
};

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
