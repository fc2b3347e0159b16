// SPDX-License-Identifier: GPL-2.0

//! The C object of a memory region.

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc, //
};

use core::{
    mem::ManuallyDrop,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};

use crate::pd::{
    Counted,
    Pd, //
};

/// The kind of memory that a region may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole pages, except that it may start and end inside one.
    Pages,
    /// The same, of pages of 64 KiB.
    LargePages,
    /// Anything. Needs [`Limits::sg_gaps`](crate::limits::Limits::sg_gaps).
    Gaps,
}

/// A `struct ib_mr` made for fast registration. Dropping it deregisters it, and may sleep.
///
/// # Invariants
///
/// `mr` is a region on the protection domain of `counted`. It is deregistered only here, by who takes
/// that out, which is done once and last.
pub(super) struct RawMr {
    mr: NonNull<rdma_bindings::ib_mr>,
    counted: ManuallyDrop<Counted>,
}

// SAFETY: A region is not tied to a task.
unsafe impl Send for RawMr {}

// SAFETY: A shared reference only reads fields. They change only through an exclusive reference, or
// unsafely.
unsafe impl Sync for RawMr {}

impl RawMr {
    /// Allocates a region. May sleep.
    pub(super) fn alloc(pd: &Arc<Pd>, kind: Kind, max_pages: u32) -> Result<Self> {
        let kind = match kind {
            Kind::Pages | Kind::LargePages => rdma_bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
            Kind::Gaps => rdma_bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS,
        };
        // SAFETY: The domain is there.
        let mr = unsafe { rdma_bindings::ib_alloc_mr(pd.as_raw(), kind, max_pages) };
        // INVARIANT: Just allocated on the domain.
        Ok(Self {
            mr: NonNull::new(from_err_ptr(mr)?).ok_or(ENOMEM)?,
            counted: ManuallyDrop::new(Counted::new(pd)),
        })
    }

    /// Returns the protection domain.
    pub(super) fn pd(&self) -> &Arc<Pd> {
        self.counted.pd()
    }

    /// Returns the raw pointer.
    pub(super) fn as_raw(&self) -> *mut rdma_bindings::ib_mr {
        self.mr.as_ptr()
    }

    /// Returns the length in bytes since it was mapped.
    #[inline]
    pub(super) fn length(&self) -> u64 {
        // SAFETY: The region is there, and its length changes by way of an exclusive reference only.
        unsafe { (*self.as_raw()).length }
    }

    /// Deregisters the region: after that the device doesn't touch its memory. May sleep.
    ///
    /// On an error the region has been leaked, and the device may still use it.
    #[inline]
    pub(super) fn deregister(self) -> Result {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        unsafe { this.end() }
    }

    /// Leaves the region to the device for good, which may still come to use it.
    pub(super) fn leak(self) {
        let mut this = ManuallyDrop::new(self);
        let (mr, device) = (this.mr.as_ptr(), this.pd().device().as_raw());
        // SAFETY: `mr` is a region of `device` by the type invariant, and nothing frees it from here on.
        unsafe { rdma_bindings::rdma_helper_disown(device, &raw mut (*mr).res) };
        // SAFETY: `this` is never dropped nor used again.
        let counted = unsafe { ManuallyDrop::take(&mut this.counted) };
        // The domain is not held any more, so that the device can go.
        let _ = counted.end("memory region", || Err(EIO));
    }

    /// Deregisters the region.
    ///
    /// # Safety
    ///
    /// To be the last that is done with `self`.
    unsafe fn end(&mut self) -> Result {
        // SAFETY: The caller promises that this is the last use of `self`, so `counted` is taken
        // once.
        let counted = unsafe { ManuallyDrop::take(&mut self.counted) };
        let mr = self.mr.as_ptr();
        // SAFETY: `mr` is there by the type invariant, and isn't used again.
        let deregister = || to_result(unsafe { rdma_bindings::ib_dereg_mr_user(mr, null_mut()) });
        counted.end("memory region", deregister)
    }
}

impl Drop for RawMr {
    fn drop(&mut self) {
        // An error has been reported; who needs to know whether the device is done with the region
        // has called `deregister()`.
        //
        // SAFETY: `self` is being dropped, so this is its last use.
        let _ = unsafe { self.end() };
    }
}
