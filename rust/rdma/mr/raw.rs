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
    },
};

use super::Kind;
use crate::pd::Pd;

/// A `struct ib_mr` made for fast registration. Dropping it deregisters it, and may sleep.
///
/// # Invariants
///
/// `mr` is a region on `pd` that is deregistered only here, and is counted there.
pub(super) struct RawMr {
    mr: NonNull<rdma_bindings::ib_mr>,
    pd: Arc<Pd>,
}

// SAFETY: A region is not tied to a task.
unsafe impl Send for RawMr {}

// SAFETY: What can be done with a shared reference is to read fields that change only by way of
// an exclusive one, or unsafely.
unsafe impl Sync for RawMr {}

impl RawMr {
    /// Allocates a region. May sleep.
    pub(super) fn alloc(pd: &Arc<Pd>, kind: Kind, max_pages: u32) -> Result<Self> {
        let kind = match kind {
            Kind::Pages => rdma_bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
            Kind::Gaps => rdma_bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS,
        };
        // SAFETY: The domain is there.
        let mr = unsafe { rdma_bindings::ib_alloc_mr(pd.as_raw(), kind, max_pages) };
        let mr = NonNull::new(from_err_ptr(mr)?).ok_or(ENOMEM)?;
        pd.object_made();

        // INVARIANT: Just allocated and counted.
        Ok(Self { mr, pd: pd.clone() })
    }

    /// The protection domain.
    pub(super) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// The raw pointer.
    pub(super) fn as_raw(&self) -> *mut rdma_bindings::ib_mr {
        self.mr.as_ptr()
    }

    /// Deregisters the region: after that the device doesn't touch its memory. May sleep.
    ///
    /// On an error the region has been leaked, and the device may still use it.
    pub(super) fn deregister(self) -> Result {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used any more but for the domain, and never dropped.
        let result = unsafe { this.dereg() };
        // SAFETY: As above.
        drop(unsafe { core::ptr::read(&this.pd) });
        result
    }

    /// Leaves the region to the device for good, which may still come to use it.
    pub(super) fn leak(self) {
        let this = ManuallyDrop::new(self);
        this.pd.object_goes();
        let device = this.pd.device().as_raw();
        // SAFETY: The region is one of the device's, and nothing frees it.
        unsafe { rdma_bindings::rdma_helper_disown(device, &raw mut (*this.as_raw()).res) };
        this.pd.object_leaked("memory region", EIO);
        // SAFETY: `this` is not used any more, and never dropped. The domain is not held any more,
        // so that the device can go.
        drop(unsafe { core::ptr::read(&this.pd) });
    }

    /// Deregisters the region.
    ///
    /// # Safety
    ///
    /// The region must not be used after this.
    unsafe fn dereg(&self) -> Result {
        self.pd.object_goes();
        // SAFETY: By the type invariant the region is there, and the caller doesn't use it again.
        to_result(unsafe { rdma_bindings::ib_dereg_mr_user(self.as_raw(), null_mut()) })
            .inspect_err(|error| self.pd.object_leaked("memory region", *error))
    }
}

impl Drop for RawMr {
    fn drop(&mut self) {
        // SAFETY: This is the last use. An error has been reported; who needs to know whether the
        // device is done with the region has called `deregister()`.
        let _ = unsafe { self.dereg() };
    }
}
