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
use crate::{
    cq::Polling,
    waiter::Waiter, //
};

/// How often to look in any case: others may have had the CPU in between, for as long as they like.
const LOOKS: u32 = 8;

/// How long to look after that, before going to sleep.
const LOOK_FOR: Delta = Delta::from_micros(100);

impl LocalQp {
    /// Looks for a moment whether all requests of a waiter complete, and returns whether they have;
    /// not if enough others look, or somebody sleeps: then softirq tells. Callbacks of others' requests
    /// are called on the way. To be called before [`Waiter::begin_wait`].
    pub(super) fn poll(&self, waiter: &Waiter<'_>) -> bool {
        let Some(polling) = self.cq.poll() else {
            return waiter.is_over();
        };
        for _ in 0..LOOKS {
            if waiter.is_over() {
                return true;
            }
            if !look(&polling) {
                return false;
            }
        }
        let began = Instant::<Monotonic>::now();
        while !waiter.is_over() {
            if !look(&polling) || began.elapsed() > LOOK_FOR {
                return false;
            }
        }
        true
    }
}

/// Gives way to whoever else may run - over rxe, who carries the requests out -, and reaps what is
/// there then. Returns `false` if that is softirq's now.
///
/// `cond_resched()` does nothing in a kernel that can be preempted, and `schedule()` comes back at once,
/// again and again, as long as the caller's turn isn't over: unless the scheduler has said that it is, as it
/// mostly has when rxe's worker was woken. So the turn is given away only if it hasn't. Sleeps only as long
/// as others run.
fn look(polling: &Polling<'_>) -> bool {
    // SAFETY: May be called in process context, where no spinlock is held.
    unsafe {
        match rdma_bindings::rdma_helper_turn_is_over() {
            true => bindings::schedule(),
            false => bindings::yield_(),
        }
    };
    polling.reap()
}
