// SPDX-License-Identifier: GPL-2.0

//! Draining of queue pairs: waiting until all posted requests have completed.
//!
//! The driver's own drain (`drain_sq()`, `drain_rq()`) is not called. It waits without a limit, and
//! does not report a failure, for instance after a failed transition to the error state. Drivers
//! have their own drain for a device in reset. A device in reset refuses requests. Its driver
//! completes the outstanding ones when the completion queue is polled, which this drain does.

use super::{
    Qp,
    RawQp, //
};
use crate::{
    completion::Done,
    cq::Entries,
    gather::Gather,
    prelude::*,
    waiter::Waiter,
    wr::{
        Receive,
        WorkRequest, //
    }, //
};
use kernel::time::{
    delay::fsleep,
    Delta, //
};
use pin_init::stack_pin_init;

/// How long a drain sleeps before it posts its request again, or looks again whether all requests have ended.
const LOOK: Delta = Delta::from_millis(10);
const LOOKS_PER_SECOND: u32 = 100;

/// How long a drain without a limit left waits for its request, in milliseconds.
const AT_LEAST: u32 = 100;
/// How often it then looks again if the driver refuses the request: for the same time.
const LOOKS_AT_LEAST: u32 = AT_LEAST * LOOKS_PER_SECOND / 1000;

/// The state of the request that a drain posts.
enum Last {
    /// The device has flushed it: the queue pair is in error, and the requests before it have ended.
    Flushed,
    /// It succeeded, which says nothing of the queue pair's state.
    Succeeded,
    /// The driver has refused it, or the request of an earlier drain that gave up has not completed.
    Refused,
    /// It may complete yet.
    UnderWay,
}

impl<S> Qp<S> {
    /// Waits until all send requests have ended, and returns whether they have. Sleeps, uninterruptibly, at most
    /// `limit` seconds and 100 ms.
    ///
    /// The queue pair must be in error, and nobody may post any more. If this returns false, the device may carry
    /// requests out until the queue pair is destroyed.
    pub fn drain(&self, limit: u32) -> bool {
        let qp = self.as_raw();
        // SAFETY: `qp` is valid as long as `self`. The request is this closure's, refers to nothing, and `flush` waits.
        let post = |cqe| unsafe { WorkRequest::post(&mut WorkRequest::empty(), qp, cqe, 0) };
        self.drain_queue(self.send_entries(), &self.raw.sends, post, limit)
    }

    /// Drains the receive requests like [`Qp::drain`].
    pub fn drain_receives(&self, limit: u32) -> bool {
        if self.raw.srq.is_some() || self.receive_entries().is_none_or(Entries::is_empty) {
            return true;
        }
        let qp = self.as_raw();
        let post = |cqe| {
            // A request without memory, as in `__ib_drain_rq()`.
            let last = Receive::new(Gather::none())?.copy(cqe)?;
            // SAFETY: `qp` is valid as long as `self`. The request refers to nothing, and `flush` waits.
            to_result(unsafe { rdma_bindings::rdma_helper_post_recv(qp, &last) })
        };
        self.drain_queue(self.receive_entries(), &self.raw.receives, post, limit)
    }

    /// Waits for the requests of one of its queues. `post` posts a request without memory with the
    /// `cqe` that it gets.
    fn drain_queue(
        &self,
        entries: Option<&Entries>,
        queue: &Outstanding,
        post: impl Fn(*mut rdma_bindings::ib_cqe) -> Result,
        limit: u32,
    ) -> bool {
        // Completions lead to requests as long as there are any.
        queue.break_by(WcStatus::FLUSHED);
        // Softirq tells the owners of flushed requests meanwhile.
        let _listening = entries.map(|entries| entries.cq().listen());
        // A driver that refuses the request may have no place for it before another one has completed.
        let mut looks = limit
            .saturating_mul(LOOKS_PER_SECOND)
            .saturating_add(LOOKS_AT_LEAST);
        let drained = loop {
            match self.flush(entries, queue, &post, looks / LOOKS_PER_SECOND) {
                Last::Flushed => {
                    queue.end_silent();
                    break true;
                }
                Last::Succeeded => break queue.is_idle(),
                Last::UnderWay => break false,
                Last::Refused if queue.is_idle() => break true,
                Last::Refused if looks == 0 => break false,
                Last::Refused => (),
            }
            fsleep(LOOK);
            looks -= 1;
        };
        // Completions don't lead to the requests any more, unless somebody has posted meanwhile.
        if let Some(entries) = entries.filter(|_| drained && queue.is_idle()) {
            entries.drained();
        }
        drained
    }

    /// Posts a request behind all others, and waits for it, at most `limit` seconds and [`AT_LEAST`]. Does not wait if
    /// the driver refuses the request.
    fn flush(
        &self,
        entries: Option<&Entries>,
        queue: &Outstanding,
        post: impl FnOnce(*mut rdma_bindings::ib_cqe) -> Result,
        limit: u32,
    ) -> Last {
        stack_pin_init!(let waiter = Waiter::new(queue));
        let waiter = waiter.into_ref();
        // The driver never has two requests of drains: the queue reserves an entry for one, and when it has completed,
        // no completion refers to `queue` any more.
        // SAFETY: The queue pair is valid as long as `self`, which frees `queue` after it. The request
        // refers to nothing. The waiter waits below, or gives up.
        let posted = unsafe { waiter.post_last(post) };
        stack_pin_init!(let done = Done::new());
        let done = done.into_ref();
        // SAFETY: It stays until this returns, when the request has ended, or the waiter has given up.
        let mut ended = unsafe { waiter.begin_wait(done) } || done.wait_for(AT_LEAST);
        for _ in 0..limit {
            ended = ended || done.nap();
        }
        if let Some(entries) = entries.filter(|_| !ended || posted.is_err()) {
            // Finds completions that an interrupt was lost for, or that the driver makes when it is polled.
            entries.cq().settle();
        }
        match (ended || waiter.give_up(done), posted, waiter.status()) {
            (false, _, _) => Last::UnderWay,
            (true, Err(_), _) => Last::Refused,
            (true, Ok(()), WcStatus::SUCCESS) => Last::Succeeded,
            (true, Ok(()), _) => Last::Flushed,
        }
    }
}

impl<S> Qp<S> {
    /// Checks whether it shares its receives with others. Any context.
    pub(crate) fn shares_receives(&self) -> bool {
        self.raw.srq.is_some()
    }

    /// Waits until the device takes no more shared receives for this queue pair, and has completed
    /// those that it had taken. Receives that have not completed when the queue pair is destroyed
    /// are lost until their queue is destroyed. Sleeps at most `limit` seconds, and not at all if
    /// the device is known not to report this.
    ///
    /// The queue pair must have been connected, and be in error.
    pub(crate) fn await_last_shared(&self, limit: u32) {
        if !self.shares_receives() || !self.pd().last_wqe.load(Relaxed) {
            return;
        }
        // SAFETY: The queue pair is there as long as `self`.
        let told = unsafe { rdma_bindings::rdma_helper_await_last_wqe(self.as_raw(), limit) };
        if !told {
            pr_debug!("queue pair {}: no last receive\n", self.number());
            // One that is in error and silent for that long stays silent the next time.
            self.pd().last_wqe.store(false, Relaxed);
        }
    }
}

impl RawQp {
    /// Sees to it that what has completed of receives that others share is told, which aren't over with
    /// this. Sleeps.
    pub(super) fn settle(&self, entries: &Option<[Entries; 2]>) {
        if let (Some(_), Some([_, receives])) = (&self.srq, entries) {
            receives.cq().settle();
        }
    }
}
