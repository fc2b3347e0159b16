// SPDX-License-Identifier: GPL-2.0

//! Who takes completions out of a queue, and calls their callbacks.
//!
//! A queue is quiet as long as nobody listens: no interrupt is asked for, and completions lie in it
//! until somebody reaps it who would wait for one. Who goes to sleep listens meanwhile, and
//! softirq reaps for all. It is one or the other, never both: callbacks are called one at a time,
//! in the order of the completions, and each of those is taken out once.
//!
//! A completion that comes while somebody begins to listen is not missed: what came before the
//! interrupt was asked for is found then, and what comes after it is told.
//!
//! Lock order: the lock of a queue is a leaf, under which callbacks are called.

use super::Cq;
use kernel::{
    cpu::nr_cpu_ids,
    sync::atomic::Relaxed,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// How many completions to reap at most in one go. There may be others who wait for theirs.
const BUDGET: u32 = 64;

/// As many as there are.
const ALL: i32 = -1;

/// How long softirq is given to get done.
const A_MOMENT: Delta = Delta::from_millis(1);

impl Cq {
    /// The right to [reap](Cq::reap) again and again, unless there are as many already who do as there
    /// are CPUs: more would only give way to one another. Nor while somebody listens. Doesn't sleep.
    pub(crate) fn poll(&self) -> Option<Polling<'_>> {
        let before = self.pollers.fetch_add(1, Relaxed);
        let polling = Polling(self);
        let may = before < nr_cpu_ids() && (self.raw.quiet.load(Relaxed) || self.reap());
        may.then_some(polling)
    }

    /// Calls the callbacks of what has completed, unless somebody else is at it just now. Returns
    /// `false` if somebody listens: then it is softirq's. Doesn't sleep.
    fn reap(&self) -> bool {
        let Some(listeners) = self.listeners.try_lock() else {
            return true;
        };
        if *listeners > 0 {
            return false;
        }
        if self.try_quiet() {
            // SAFETY: `cq` is there as long as `self`, and softirq doesn't poll it, as it is quiet.
            unsafe { rdma_bindings::rdma_helper_reap_cq(self.as_raw(), BUDGET) };
        }
        true
    }

    /// Calls the callbacks of all that has completed, and returns when they have. Sleeps while softirq is at
    /// it.
    pub(crate) fn settle(&self) {
        let listeners = self.listeners.lock();
        while !self.try_quiet() {
            fsleep(A_MOMENT);
        }
        // SAFETY: `cq` is there as long as `self`, and softirq doesn't poll it, as it is quiet.
        unsafe { rdma_bindings::ib_process_cq_direct(self.as_raw(), ALL) };
        if *listeners > 0 {
            self.make_loud();
        }
    }

    /// Has softirq call the callbacks of what completes, from now on until what is returned is
    /// dropped; also of what has completed before. May sleep, but not for long.
    pub(crate) fn listen(&self) -> Listening<'_> {
        let mut listeners = self.listeners.lock();
        *listeners += 1;
        self.make_loud();
        Listening(self)
    }

    /// Has softirq reap, if it doesn't. To be called with the lock.
    fn make_loud(&self) {
        if self.raw.quiet.load(Relaxed) {
            self.raw.quiet.store(false, Relaxed);
            // SAFETY: `cq` is there as long as `self`, and was quiet.
            unsafe { rdma_bindings::rdma_helper_listen_cq(self.as_raw()) };
        }
    }

    /// Makes the queue quiet, and returns whether it is; not if softirq is at it just now. To be
    /// called with the lock, if nobody listens.
    fn try_quiet(&self) -> bool {
        if self.raw.quiet.load(Relaxed) {
            return true;
        }
        // SAFETY: `cq` is there as long as `self`.
        let quiet = unsafe { rdma_bindings::rdma_helper_quiet_cq(self.as_raw()) };
        // INVARIANT: It is disabled, as the helper says.
        self.raw.quiet.store(quiet, Relaxed);
        quiet
    }
}

/// Somebody who listens to a completion queue. Dropping it may sleep, but not for long.
#[must_use = "nobody listens any more once it is dropped"]
pub(crate) struct Listening<'a>(&'a Cq);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut listeners = self.0.listeners.lock();
        *listeners -= 1;
        if *listeners == 0 {
            // If softirq is at it, the next one who reaps tries again.
            self.0.try_quiet();
        }
    }
}

/// Somebody who looks for completions again and again. Given up when dropped, in any context.
pub(crate) struct Polling<'a>(&'a Cq);

impl Polling<'_> {
    /// As [`Cq::reap`].
    pub(crate) fn reap(&self) -> bool {
        self.0.reap()
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.pollers.fetch_sub(1, Relaxed);
    }
}
