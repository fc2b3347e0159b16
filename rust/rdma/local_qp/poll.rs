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
    /// Looks for a moment whether all requests of a waiter complete, and returns whether they have;
    /// not if enough others look, or somebody sleeps: then softirq tells. Callbacks of others' requests
    /// are called on the way. To be called before [`Waiter::begin_wait`].
    pub(super) fn poll(&self, waiter: &Waiter<'_>) -> bool {
        let Some(polling) = self.cq.poll() else {
            return waiter.is_over();
        };
        give_way();
        for _ in 0..LOOKS {
            if !polling.reap() {
                return false;
            }
            if waiter.is_over() {
                return true;
            }
            give_turn_away();
        }
        let began = Instant::<Monotonic>::now();
        while polling.reap() {
            if waiter.is_over() {
                return true;
            }
            if began.elapsed() > LOOK_FOR {
                return false;
            }
            give_turn_away();
        }
        false
    }
}

/// Lets other tasks run if the scheduler prefers them. Over rxe, that is the worker that carries
/// the requests out. The scheduler mostly prefers the worker when it was woken, since it runs
/// seldom. `cond_resched()` does nothing in a preemptible kernel. The caller may be in any task
/// state, and is `TASK_RUNNING` afterwards.
fn give_way() {
    // SAFETY: The caller is in process context, and holds no spinlock.
    unsafe { rdma_bindings::rdma_helper_schedule() };
}

/// Lets other tasks run, however long they have run already. `schedule()` would return at once,
/// again and again, as long as the caller's turn isn't over. But the scheduler charges a task that
/// yields for all of its turn. Then it runs waking tasks first until that is made up for. So a
/// caller yields only if [`give_way`] was of no use. The caller may be in any task state. `yield()`
/// sets `TASK_RUNNING`.
fn give_turn_away() {
    // SAFETY: The caller is in process context, and holds no spinlock.
    unsafe {
        match rdma_bindings::rdma_helper_turn_is_over() {
            true => rdma_bindings::rdma_helper_schedule(),
            false => bindings::yield_(),
        }
    };
}
