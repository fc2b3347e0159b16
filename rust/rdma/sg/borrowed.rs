// SPDX-License-Identifier: GPL-2.0

//! Scatterlists that somebody else has mapped.

use kernel::{
    bindings,
    prelude::*,
    sync::aref::ARef, //
};

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use crate::device::Device;

/// A scatterlist that somebody else has mapped for a device, and lends for a while.
///
/// The mapping stays when the list goes, so regions are made of copies (`CopiedSg`). What counts
/// is the mapped entries' address and length, never the pages and their lengths.
///
/// # Invariants
///
/// - `sgl` is valid for `'a`, and has at least `count` entries, not 0.
/// - They are mapped for `device`, and stay so until each region made of them has been closed.
#[derive(Clone, Copy)]
pub struct BorrowedSg<'a> {
    sgl: NonNull<bindings::scatterlist>,
    count: u32,
    pub(super) device: &'a ARef<Device>,
    _list: PhantomData<&'a bindings::scatterlist>,
}

// SAFETY: The list isn't tied to a task, and isn't changed for `'a`.
unsafe impl Send for BorrowedSg<'_> {}

// SAFETY: As above.
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

    /// The address and length of each mapped entry, as the device sees them.
    pub fn segments(&self) -> Segments<'a> {
        Segments {
            next: self.sgl.as_ptr(),
            left: self.count,
            _list: PhantomData,
        }
    }
}

/// An iterator over the mapped entries of a [`BorrowedSg`]: DMA address and length.
///
/// It ends early if the list does.
///
/// # Invariants
///
/// `next` is NULL or an entry of a list that is valid for `'a`, and `left` counts the mapped
/// entries from there on.
#[derive(Clone)]
pub struct Segments<'a> {
    next: *mut bindings::scatterlist,
    pub(super) left: u32,
    _list: PhantomData<&'a bindings::scatterlist>,
}

impl Iterator for Segments<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.next.is_null() || self.left == 0 {
            return None;
        }
        let entry = self.next;
        self.left -= 1;
        // Not beyond the last that counts, which may be where the caller's memory ends.
        if self.left > 0 {
            // INVARIANT: The next entry of the same list, or NULL after the last.
            // SAFETY: By the type invariant the entry is valid.
            self.next = unsafe { bindings::sg_next(entry) };
        }

        // SAFETY: By the type invariant the entry is valid.
        let len = unsafe { rdma_bindings::rdma_helper_sg_dma_len(entry) };
        // SAFETY: As above.
        let address = unsafe { bindings::sg_dma_address(entry) };
        Some((address, u64::from(len)))
    }
}
