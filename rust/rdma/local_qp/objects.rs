// SPDX-License-Identifier: GPL-2.0

//! The C objects of a queue pair, each freed when dropped.

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

use crate::{
    device::Device,
    pd::Pd, //
};

/// A completion queue that is polled in softirq context.
///
/// # Invariants
///
/// `0` is a completion queue that is freed only here.
pub(super) struct Cq(NonNull<rdma_bindings::ib_cq>);

// SAFETY: A completion queue is not tied to a task.
unsafe impl Send for Cq {}

// SAFETY: The C side does its own locking.
unsafe impl Sync for Cq {}

impl Cq {
    /// Allocates a completion queue with `entries` entries. May sleep.
    ///
    /// It must be dropped before the device is let go of.
    pub(super) fn alloc(device: &Device, entries: u32) -> Result<Self> {
        // SAFETY: The device is there.
        let cq = unsafe { rdma_bindings::rdma_helper_alloc_cq(device.as_raw(), entries) };
        // INVARIANT: Just allocated.
        Ok(Self(NonNull::new(from_err_ptr(cq)?).ok_or(ENOMEM)?))
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. The queue pair that uses it owns it, and is gone.
        unsafe { rdma_bindings::ib_free_cq(self.0.as_ptr()) };
    }
}

/// A reliable queue pair without a receive queue, and its completion queue.
///
/// To be destroyed by [`RawQp::destroy`]; dropping it, on an error path before anything has been
/// posted, does that too.
///
/// # Invariants
///
/// `qp` is a queue pair on `pd` that is destroyed only here, and is counted there. It completes to
/// `cq`, which nothing else uses.
pub(super) struct RawQp {
    qp: NonNull<rdma_bindings::ib_qp>,
    // Dropped by whoever has destroyed the queue pair.
    cq: ManuallyDrop<Cq>,
    pd: Arc<Pd>,
}

// SAFETY: A queue pair is not tied to a task.
unsafe impl Send for RawQp {}

// SAFETY: The C side does its own locking.
unsafe impl Sync for RawQp {}

impl RawQp {
    /// Creates a queue pair for `depth` signalled work requests, which complete to `cq`. May sleep.
    pub(super) fn create(pd: Arc<Pd>, cq: Cq, depth: u32) -> Result<Self> {
        let mut attr = rdma_bindings::ib_qp_init_attr {
            send_cq: cq.0.as_ptr(),
            recv_cq: cq.0.as_ptr(),
            cap: rdma_bindings::ib_qp_cap {
                max_send_wr: depth,
                max_send_sge: 1,
                ..Default::default()
            },
            sq_sig_type: rdma_bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
            qp_type: rdma_bindings::ib_qp_type_IB_QPT_RC,
            ..Default::default()
        };
        // SAFETY: The domain and the completion queue are there, and `attr` is filled.
        let qp = unsafe { rdma_bindings::rdma_helper_create_qp(pd.as_raw(), &mut attr) };
        let qp = NonNull::new(from_err_ptr(qp)?).ok_or(ENOMEM)?;
        pd.object_made();

        // INVARIANT: Just created and counted, with this completion queue.
        Ok(Self {
            qp,
            cq: ManuallyDrop::new(cq),
            pd,
        })
    }

    /// The raw pointer.
    pub(super) fn as_raw(&self) -> *mut rdma_bindings::ib_qp {
        self.qp.as_ptr()
    }

    /// The queue pair's number.
    pub(super) fn number(&self) -> u32 {
        // SAFETY: The queue pair is there, and its number is constant.
        unsafe { (*self.as_raw()).qp_num }
    }

    /// Changes attributes, those that `mask` names. May sleep.
    pub(super) fn modify(&self, attr: &mut rdma_bindings::ib_qp_attr, mask: u32) -> Result {
        let mask = c_int::try_from(mask)?;
        // SAFETY: The queue pair is there, and `attr` may be changed.
        to_result(unsafe { rdma_bindings::ib_modify_qp(self.as_raw(), attr, mask) })
    }
}

impl RawQp {
    /// Puts the queue pair into error. May sleep.
    pub(super) fn fail(&self) -> Result {
        let mut attr = rdma_bindings::ib_qp_attr {
            qp_state: rdma_bindings::ib_qp_state_IB_QPS_ERR,
            ..Default::default()
        };
        self.modify(&mut attr, rdma_bindings::ib_qp_attr_mask_IB_QP_STATE)
    }

    /// Has the driver wait until all that was posted has completed, if it has its own way to do
    /// so, and returns whether it has. Sleeps as the driver does.
    pub(super) fn drained_by_driver(&self) -> bool {
        // SAFETY: The queue pair is there.
        unsafe { rdma_bindings::rdma_helper_drain_sq(self.as_raw()) }
    }

    /// Destroys the queue pair, then the completion queue. When this has succeeded, nothing that
    /// was posted is carried out or completes any more. May sleep.
    ///
    /// On an error both have been leaked, and what a completion leads to must be too.
    pub(super) fn destroy(self) -> Result {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used any more but for the domain, and never dropped.
        let result = unsafe { this.end() };
        // SAFETY: As above.
        drop(unsafe { core::ptr::read(&this.pd) });
        result
    }

    /// Destroys both.
    ///
    /// # Safety
    ///
    /// Neither must be used after this.
    unsafe fn end(&mut self) -> Result {
        self.pd.object_goes();
        // SAFETY: By the type invariant it is there, and the caller doesn't use it again.
        to_result(unsafe { rdma_bindings::ib_destroy_qp_user(self.as_raw(), null_mut()) })
            // The queue pair keeps its completion queue.
            .inspect_err(|&error| self.leak(error))?;
        // SAFETY: It isn't used again, and dropped only here.
        unsafe { ManuallyDrop::drop(&mut self.cq) };
        Ok(())
    }
}

impl Drop for RawQp {
    fn drop(&mut self) {
        // SAFETY: This is the last use. An error has been reported; who needs to know has called
        // `destroy()`.
        let _ = unsafe { self.end() };
    }
}

impl RawQp {
    /// Leaves the C objects to themselves.
    fn leak(&self, error: Error) {
        let device = self.pd.device().as_raw();
        // SAFETY: Both are the device's, and nothing frees them.
        unsafe {
            rdma_bindings::rdma_helper_disown(device, &raw mut (*self.as_raw()).res);
            rdma_bindings::rdma_helper_disown(device, &raw mut (*self.cq.0.as_ptr()).res);
        }
        self.pd.object_leaked("queue pair", error);
    }
}
