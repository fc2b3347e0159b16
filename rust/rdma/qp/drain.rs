// SPDX-License-Identifier: GPL-2.0

//! Waiting for what has been posted.

use pin_init::stack_pin_init;

use super::Qp;
use crate::{
    completion::Done,
    cq::Entries,
    outstanding::Outstanding,
    raw_wr::RawWr,
    waiter::Waiter,
    wc::WcStatus,
    wr::WorkRequest, //
};

impl<S> Qp<S> {
    /// Waits until all send requests have completed, as far as the device still knows of them, and
    /// returns whether that is so. Sleeps at most so many seconds, or as the driver does, if it
    /// drains queues itself.
    ///
    /// The queue pair must be in error, or this may take all that time; nothing more can be posted from now
    /// on. What somebody is just about to post may be outstanding still.
    pub fn drain(&self, limit: u32) -> bool {
        // SAFETY: The queue pair is there as long as `self`.
        let by_driver = || unsafe { rdma_bindings::rdma_helper_drain_sq(self.as_raw()) };
        self.drain_queue(
            self.send_entries(),
            self.sends(),
            by_driver,
            WorkRequest::drain().raw(),
            limit,
        )
    }

    /// As [`Qp::drain`], for its receive requests.
    pub fn drain_receives(&self, limit: u32) -> bool {
        if self.raw.srq.is_some() || self.receive_entries().is_none_or(Entries::is_empty) {
            return true;
        }
        // SAFETY: The queue pair is there as long as `self`.
        let by_driver = || unsafe { rdma_bindings::rdma_helper_drain_rq(self.as_raw()) };
        self.drain_queue(
            self.receive_entries(),
            self.receives(),
            by_driver,
            // Into no memory. What `__ib_drain_rq()` posts.
            RawWr {
                receive: true,
                ..Default::default()
            },
            limit,
        )
    }

    /// Waits for the requests of one of its queues.
    fn drain_queue(
        &self,
        entries: Option<&Entries>,
        queue: &Outstanding,
        by_driver: impl FnOnce() -> bool,
        last: RawWr,
        limit: u32,
    ) -> bool {
        // Completions lead to requests as long as there are any.
        queue.break_by(WcStatus::FLUSHED);
        // What is flushed is told by softirq meanwhile.
        let _listening = entries.map(|entries| entries.cq().listen());
        // Some drivers have their own way.
        let drained = by_driver() || self.drained_by_request(queue, last, limit);
        if drained {
            queue.end_silent();
            // Completions don't lead to the requests any more, unless somebody has posted meanwhile.
            if let Some(entries) = entries.filter(|_| queue.is_idle()) {
                entries.drained();
            }
        }
        drained
    }

    /// Posts a request behind all others, which refers to nothing, and waits until it is flushed.
    fn drained_by_request(&self, queue: &Outstanding, last: RawWr, limit: u32) -> bool {
        stack_pin_init!(let waiter = Waiter::new(queue));
        let waiter = waiter.into_ref();
        // SAFETY: The queue pair is there as long as `self`, and goes before its requests do. The
        // request refers to nothing. The waiter waits below, or gives up.
        let posted = unsafe { waiter.post_last(self.as_raw(), last) };
        stack_pin_init!(let done = Done::new());
        let done = done.into_ref();
        // SAFETY: It stays until this returns, when the request has ended, or the waiter has given up.
        let mut over = unsafe { waiter.begin_wait(done) } || posted.is_err();
        for _ in 0..limit {
            over = over || done.nap();
        }
        over = over || waiter.give_up(done);
        over && posted.is_ok()
    }
}
