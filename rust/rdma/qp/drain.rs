// SPDX-License-Identifier: GPL-2.0

//! Waiting for what has been posted.

use pin_init::stack_pin_init;

use super::Qp;
use crate::{
    cq::Cq,
    waiter::Waiter,
    wr::WorkRequest, //
};

impl<S> Qp<S> {
    /// Waits until all send requests have completed, as far as the device still knows of them, and
    /// returns whether that is so. Sleeps at most so many seconds, or as the driver does, if it
    /// drains queues itself.
    ///
    /// The queue pair must be in error, and nobody post any more: whatever comes after this may be
    /// outstanding still.
    pub fn drain(&self, limit: u32) -> bool {
        // What is flushed is told by softirq meanwhile.
        let _listening = self.sends_to().map(Cq::listen);
        let drained = self.drained_by_driver() || self.drained_by_request(limit);
        if drained {
            self.drained();
        }
        drained
    }

    /// Has the driver wait, if it has its own way to do so, and returns whether it has.
    fn drained_by_driver(&self) -> bool {
        // SAFETY: The queue pair is there as long as `self`.
        unsafe { rdma_bindings::rdma_helper_drain_sq(self.as_raw()) }
    }

    /// Posts a request behind all others, and waits until it is flushed.
    fn drained_by_request(&self, limit: u32) -> bool {
        stack_pin_init!(let waiter = Waiter::new(self.sends()));
        let waiter = waiter.into_ref();
        // SAFETY: The queue pair is there as long as `self`, and goes before its requests do. The
        // request refers to nothing. The waiter waits below, or gives up.
        let posted = unsafe { waiter.post(self.as_raw(), WorkRequest::drain().raw()) };
        let mut over = waiter.begin_wait() || posted.is_err();
        for _ in 0..limit {
            over = over || waiter.nap();
        }
        over = over || waiter.give_up();
        over && posted.is_ok()
    }
}
