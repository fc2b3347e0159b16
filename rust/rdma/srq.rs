// SPDX-License-Identifier: GPL-2.0

//! Receive requests that queue pairs share.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_srq`
//!
//! The completion queue of a completed request shows which queue pair has used it. A failed queue
//! pair flushes no shared request. Some drivers forget a request that the queue pair had started:
//! rxe does if only some packets of a message have arrived. Those requests end with the queue.

use crate::{
    outstanding::End,
    pd::Counted,
    prelude::*, //
};

/// A queue of receive requests that queue pairs share, which are made with it and keep it.
///
/// Wraps the C `struct ib_srq`. Dropping it, which may sleep, tells the requests that no queue pair has
/// taken that they are gone.
///
/// # Invariants
///
/// `srq` is a queue on the domain of `counted` that is destroyed only here.
///
/// # Examples
///
/// ```ignore
/// let srq = Srq::create(&pd, 256, 1)?;
/// let qp = Qp::create(&pd, [&cq, &cq], depths, Some(&srq))?;
/// srq.post(request)?;
/// ```
pub struct Srq {
    srq: NonNull<rdma_bindings::ib_srq>,
    counted: Option<Counted>,
    queue: Arc<Outstanding>,
    pd: Arc<Pd>,
}

// SAFETY: Any task may use a shared receive queue.
unsafe impl Send for Srq {}

// SAFETY: The C side does its own locking.
unsafe impl Sync for Srq {}

impl Srq {
    /// Creates a queue for `depth` requests with `segments` segments each.
    pub fn create(pd: &Arc<Pd>, depth: u32, segments: u32) -> Result<Arc<Self>> {
        let queue = Outstanding::make(depth, true)?;
        let entries = Self::entries_for(depth);
        // SAFETY: The domain is held.
        let srq = unsafe { rdma_bindings::rdma_helper_create_srq(pd.as_raw(), entries, segments) };
        // INVARIANT: Just created.
        let this = Self {
            srq: NonNull::new(from_err_ptr(srq)?).ok_or(ENOMEM)?,
            counted: Some(Counted::new(pd)),
            queue,
            pd: pd.clone(),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Returns the number of entries of the queue: two more than credits, because a completion may
    /// be seen before the driver has freed the entry of its request.
    const fn entries_for(depth: u32) -> u32 {
        depth.saturating_add(2)
    }

    /// Returns the number of completion queue entries that each sharing queue pair needs.
    pub fn entries(&self) -> Result<u32> {
        Ok(Self::entries_for(self.queue.depth().try_into()?))
    }

    /// Returns the raw pointer.
    pub(crate) fn as_raw(&self) -> *mut rdma_bindings::ib_srq {
        self.srq.as_ptr()
    }

    /// Returns the outstanding requests.
    pub(crate) fn queue(&self) -> &Arc<Outstanding> {
        &self.queue
    }

    /// Returns the number of free places, an estimate while other tasks post or requests complete.
    /// Any context.
    pub fn room(&self) -> usize {
        self.queue.credits().left()
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        let Some(counted) = self.counted.take() else {
            return;
        };
        let srq = self.as_raw();
        let ended = counted.end("shared receive queue", || {
            // SAFETY: By the type invariant it is there, and isn't used again: queue pairs that share it
            // have a reference, and those that could not be destroyed make this fail.
            to_result(unsafe { rdma_bindings::ib_destroy_srq_user(srq, null_mut()) })
        });
        if ended.is_ok() {
            return self.queue.end_all(End::Gone);
        }
        let device = self.pd.device.as_raw();
        // SAFETY: It could not be destroyed, so it is there, and nothing frees it.
        unsafe { rdma_bindings::rdma_helper_disown(device, &raw mut (*srq).res) };
        self.queue.end_all(End::Lost);
    }
}
