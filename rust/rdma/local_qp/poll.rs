// SPDX-License-Identifier: GPL-2.0

//! Waiting awake.
//!
//! A device needs microseconds to register a region. To be put to sleep and woken takes about as
//! long, and the interrupt in between more.

use kernel::{
    bindings,
    time::{
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use super::LocalQp;
use crate::waiter::Waiter;

/// How often to look in any case: others may have had the CPU in between, for as long as they like.
const LOOKS: u32 = 8;

/// How long to look after that, before going to sleep.
const LOOK_FOR: Delta = Delta::from_micros(100);

impl LocalQp {
    /// Looks for a moment whether all requests of a waiter complete, and returns whether they have.
    /// Callbacks of others' requests are called on the way. Gives way to whoever else may run: over
    /// rxe, who carries the requests out. To be called before [`Waiter::begin_wait`].
    pub(super) fn poll(&self, waiter: &Waiter<'_>) -> bool {
        if (0..LOOKS).any(|_| self.look(waiter)) {
            return true;
        }
        let began = Instant::<Monotonic>::now();
        while !self.look(waiter) {
            if began.elapsed() > LOOK_FOR {
                return false;
            }
        }
        true
    }

    /// Gives way, and reaps what is there then. Returns whether all requests of a waiter have
    /// completed.
    fn look(&self, waiter: &Waiter<'_>) -> bool {
        if waiter.is_over() {
            return true;
        }
        give_way();
        self.cq.reap();
        waiter.is_over()
    }
}

/// Lets others run that can, on this CPU. Sleeps only as long as they do run.
///
/// `cond_resched()` does nothing in a kernel that can be preempted.
fn give_way() {
    // SAFETY: May be called in process context, where no spinlock is held.
    unsafe { bindings::schedule() };
}
