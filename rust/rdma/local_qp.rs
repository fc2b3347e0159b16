// SPDX-License-Identifier: GPL-2.0

//! A queue pair for work that the device does locally.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! Work requests register and invalidate regions. They need a connected queue pair, though nothing
//! goes over the wire. A key is valid on all queue pairs of its protection domain. So one queue
//! pair that carries no data is enough for all regions of a domain. It may be connected to itself.

mod end;
mod poll;
mod probe;
mod reg_inv;
mod run;

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

use core::ptr::NonNull;

use crate::{
    cq::Cq,
    outstanding::Outstanding,
    pd::Pd,
    qp::{
        Qp,
        ReadyToSend, //
    },
    wc::WrError, //
};

/// A connected queue pair and its completion queue, for requests about regions.
///
/// Any number of tasks may use it at once: each posts its work requests and waits until they are complete, looking for that itself for
/// a moment, then asleep. As many as the queue is deep are under way at a time, of all tasks
/// together.
///
/// A work request that the device fails puts the queue pair into error for good, and whatever is
/// posted from then on is flushed. Regions and their keys belong to the protection domain, so they
/// survive it: make a new queue pair and go on there. A request that the driver refuses at once
/// harms nobody else.
///
/// # Requests that don't complete
///
/// Every wait ends. When a request has not completed within the queue pair's time limit, the queue
/// pair is put into error and drained. That ends every request that the device still knows. A
/// request that ends this way has [timed out](crate::WrError::TimedOut). If a request doesn't end,
/// the queue pair is destroyed. Only then may the memory of the request be freed, since nothing
/// carries it out any more. If even destroying fails, the request is [lost](crate::WrError::Lost).
/// The region of a lost request is leaked. Its completion queue is no longer polled, so a late
/// completion has no effect.
///
/// # Destruction
///
/// Dropping it destroys the queue pair, then the completion queue, and may sleep. The queue needs
/// no draining then. Each posted request has a task that waits for its completion inside a method
/// of the queue pair. While a task is inside, it has a reference.
///
/// # Invariants
///
/// `raw` is the queue pair that `state` has or had. It is destroyed only when `up` is false and nobody is
/// counted in `posting` since, or when nobody else has a reference.
///
/// Lock order: `state`, then anything of the RDMA core, and its completion queue's. Only the
/// request of a drain is posted under it. A task that holds it waits for the device for a few time
/// limits at most.
///
/// # Examples
///
/// ```ignore
/// let queue = LocalQp::new(connected, 60)?;
/// // Reachable for peers when this has returned, by the keys that the regions have then.
/// let mut valid = None;
/// let registered = queue.register_all(SmallVec::one(prepared), |mr| valid = Some(mr));
/// registered.map_err(|failed| failed.error)?;
/// ...
/// queue.revoke_all(SmallVec::one(valid.ok_or(EIO)?), fence, |free| pool.give(free))?;
/// ```
#[pin_data(PinnedDrop)]
pub struct LocalQp {
    pd: Arc<Pd>,
    /// How long a request may take, in seconds.
    limit: u32,
    /// Where requests complete to. Goes before what they lead to.
    cq: Arc<Cq>,
    sends: Arc<Outstanding>,
    #[pin]
    state: Mutex<State>,
    /// The queue pair, for who is counted as posting while `up`.
    raw: NonNull<rdma_bindings::ib_qp>,
    /// [`LocalQp::fail`] has not been called. Changes with the lock of `state`.
    up: Atomic<bool>,
    /// A request has not completed within `limit`.
    late: Atomic<bool>,
    /// How many are posting, or are about to look whether they may.
    posting: Atomic<u32>,
}

// SAFETY: `raw` is not tied to a task, nor is anything else.
unsafe impl Send for LocalQp {}
// SAFETY: Requests may be posted to `raw` by several tasks at once; all else does its own locking.
unsafe impl Sync for LocalQp {}

enum State {
    /// Connected; it may have gone into error since.
    Present(Qp<ReadyToSend>),
    /// Destroyed: nothing will be carried out or complete any more.
    Destroyed,
    /// It could not be destroyed. It has been leaked, with the completion queue.
    Stuck,
}

impl LocalQp {
    /// Uses a connected queue pair for requests about regions. Each may take at most `limit` seconds
    /// (but at least one). May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the queue pair has no completion queue for sends.
    /// - `ENOMEM`
    pub fn new(qp: Qp<ReadyToSend>, limit: u32) -> Result<Arc<Self>> {
        let raw = NonNull::new(qp.as_raw()).ok_or(EINVAL)?;
        let cq = qp.send_cq().ok_or(EINVAL)?.clone();
        Arc::pin_init(
            // INVARIANT: `raw` is the queue pair of `state`.
            pin_init!(Self {
                pd: qp.pd().clone(),
                limit: limit.max(1),
                cq,
                sends: qp.sends().clone(),
                state <- new_mutex!(State::Present(qp)),
                raw,
                up: Atomic::new(true),
                late: Atomic::new(false),
                posting: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Checks whether a work request has failed, or [`LocalQp::fail`] has been called. Then no
    /// request succeeds here any more. Doesn't sleep.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.sends.broken().is_some()
    }

    /// Returns what broke it: that a request has timed out, the failure of one, or a flush where there was neither.
    /// Doesn't sleep.
    pub fn broken_by(&self) -> Option<WrError> {
        let failure = self.sends.broken()?.to_result().err()?;
        Some(match self.late.load(Relaxed) {
            true => WrError::TimedOut,
            false => failure,
        })
    }

    /// Checks whether a protection domain is this queue pair's.
    fn is_same_pd(&self, pd: &Arc<Pd>) -> bool {
        Arc::ptr_eq(self.pd(), pd)
    }
}

#[pinned_drop]
impl PinnedDrop for LocalQp {
    fn drop(self: Pin<&mut Self>) {
        self.destroy();
    }
}
