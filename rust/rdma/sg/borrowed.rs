// SPDX-License-Identifier: GPL-2.0

//! Scatterlists that somebody else has mapped.

use kernel::{
    bindings,
    page::PAGE_SIZE,
    prelude::*,
    sync::aref::ARef, //
};

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use super::mapping::{
    DmaList,
    Mapping, //
};
use crate::device::Device;

/// A scatterlist that somebody else has mapped for a device, and lends for a while.
///
/// The mapping stays when the list goes, so regions that outlive the loan are made of copies (`CopiedSg`), and others
/// of the list itself ([`WholeSg`]). What counts is the mapped entries' address and length, never the pages and their
/// lengths.
///
/// # Invariants
///
/// - `sgl` is valid for `'a`, and has at least `count` entries, not 0.
/// - They are mapped for `device`, and stay so until each region made of them has been closed.
#[derive(Clone, Copy)]
pub struct BorrowedSg<'a> {
    pub(super) sgl: NonNull<bindings::scatterlist>,
    pub(super) count: u32,
    pub(super) device: &'a ARef<Device>,
    _list: PhantomData<&'a bindings::scatterlist>,
}

// SAFETY: The list isn't tied to a task, and isn't changed for `'a`.
unsafe impl Send for BorrowedSg<'_> {}

// SAFETY: Nothing can be changed by a shared reference.
unsafe impl Sync for BorrowedSg<'_> {}

impl<'a> BorrowedSg<'a> {
    /// Borrows a list of which `count` entries are mapped. [`EINVAL`] if it is NULL or empty.
    ///
    /// # Safety
    ///
    /// If neither is the case:
    ///
    /// - `sgl` must be a list of at least `count` entries, valid and unchanged for `'a`;
    /// - the entries must have been mapped for `device`, and neither be unmapped nor their memory
    ///   be freed before each region made of the list has been closed, by consuming it with a
    ///   function that says so.
    pub unsafe fn from_raw(
        device: &'a ARef<Device>,
        sgl: *mut bindings::scatterlist,
        count: usize,
    ) -> Result<Self> {
        let sgl = NonNull::new(sgl).ok_or(EINVAL)?;
        // The C side counts by `int`.
        let count = u32::try_from(c_int::try_from(count)?)?;
        if count == 0 {
            return Err(EINVAL);
        }
        // INVARIANT: The caller vouches for it.
        Ok(Self {
            sgl,
            count,
            device,
            _list: PhantomData,
        })
    }
}

impl<'a> BorrowedSg<'a> {
    /// The list, to be handed on as it is: it is one of whole pages, and no region is made of it if one of them turns
    /// out to be none. [`None`] if the device has only smaller pages, of which that wouldn't be seen.
    ///
    /// # Safety
    ///
    /// The last of its entries is marked as the last.
    pub unsafe fn whole(self) -> Option<WholeSg<'a>> {
        // INVARIANT: By the requirements of this function, and as is asked here.
        (self.device.per_page() == 1).then_some(WholeSg(self))
    }
}

/// A scatterlist of whole pages that somebody else has mapped and lends, and of which a region can be made without a
/// copy, if that is valid before the loan ends.
///
/// # Invariants
///
/// - The last entry is marked as the last: the RDMA core looks for what is behind the last one that it is told of.
/// - The device has pages as large as the machine's: of smaller ones entries could begin inside of a page. As it is
///   the RDMA core ends before such an entry.
pub struct WholeSg<'a>(BorrowedSg<'a>);

// SAFETY: By the type invariants the entries are mapped for the device, and stay so until each region made of them
// has been closed, which nothing of this crate's has to see to.
unsafe impl DmaList for WholeSg<'_> {
    fn is_for(&self, device: &Device) -> bool {
        self.0.device.is_same(device)
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        f(self.0.sgl.as_ptr())
    }

    fn count(&self) -> u32 {
        self.0.count
    }

    /// None of its entries is empty.
    fn is_all(&self, length: u64) -> bool {
        // CAST: No page is that big.
        length == u64::from(self.0.count) * PAGE_SIZE as u64
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}
