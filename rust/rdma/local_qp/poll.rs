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

/// How long to look for completions before going to sleep.
const LOOK_FOR: Delta = Delta::from_micros(100);

impl LocalQp {
    /// Looks for a moment whether all requests of a waiter complete, and returns whether they have.
    /// Callbacks of others' requests are called on the way. Gives way to whoever else may run: over
    /// rxe, who carries the requests out. To be called before [`Waiter::begin_wait`].
    pub(super) fn poll(&self, waiter: &Waiter<'_>) -> bool {
        let mut began = None;
        while !waiter.is_over() {
            let now = Instant::<Monotonic>::now();
            if now - *began.get_or_insert(now) > LOOK_FOR {
                return false;
            }
            give_way();
            self.cq.reap();
        }
        true
    }
}

/// Lets others run that can, on this CPU. Sleeps only as long as they do run.
///
/// `cond_resched()` does nothing in a kernel that can be preempted.
fn give_way() {
    // SAFETY: May be called in process context, where no spinlock is held.
    unsafe { bindings::schedule() };
}
