// SPDX-License-Identifier: GPL-2.0

//! Receive requests that queue pairs share.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_srq`
//!
//! Which queue pair takes a request is known when it has completed, at the completion queue of that. A
//! queue pair that fails flushes none of them. What it had begun with, some drivers forget: rxe, when
//! only some packets of a message have come. Such a request ends with the queue.

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

use crate::{
    outstanding::{
        End,
        Outstanding, //
    },
    pd::{
        Counted,
        Pd, //
    }, //
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
/// let qp = Qp::create_sharing(&pd, &cq, &cq, depths, &srq)?;
/// srq.post(request)?;
/// ```
pub struct Srq {
    srq: NonNull<rdma_bindings::ib_srq>,
    counted: Option<Counted>,
    queue: Arc<Outstanding>,
    pd: Arc<Pd>,
}

// SAFETY: Such a queue is not tied to a task.
unsafe impl Send for Srq {}

// SAFETY: The C side does its own locking.
unsafe impl Sync for Srq {}

impl Srq {
    /// Makes a queue for so many requests, of so many segments each. May sleep.
    pub fn create(pd: &Arc<Pd>, depth: u32, segments: u32) -> Result<Arc<Self>> {
        let queue = Outstanding::shared(depth)?;
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

    /// How many requests the queue itself has room for: two more than may be posted, as a completion may
    /// be seen before the driver has taken back the place of its request.
    const fn entries_for(depth: u32) -> u32 {
        depth.saturating_add(2)
    }

    /// How many entries of its completion queue each queue pair needs that shares it.
    pub fn entries(&self) -> Result<u32> {
        Ok(Self::entries_for(self.queue.depth().try_into()?))
    }

    /// The raw pointer.
    pub(crate) fn as_raw(&self) -> *mut rdma_bindings::ib_srq {
        self.srq.as_ptr()
    }

    /// The requests that are under way.
    pub(crate) fn queue(&self) -> &Arc<Outstanding> {
        &self.queue
    }

    /// How many more requests there is room for; may be off by those that begin or end just now. Any
    /// context.
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
        let device = self.pd.device().as_raw();
        // SAFETY: It could not be destroyed, so it is there, and nothing frees it.
        unsafe { rdma_bindings::rdma_helper_disown(device, &raw mut (*srq).res) };
        self.queue.end_all(End::Lost);
    }
}
