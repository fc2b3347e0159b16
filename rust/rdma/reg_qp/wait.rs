// SPDX-License-Identifier: GPL-2.0

//! The end of a queue pair, and waiting for its requests.
//!
//! A queue pair ends in this order:
//!
//! 1. No task begins to post any more.
//! 2. The queue pair goes into error.
//! 3. The tasks that are posting return.
//! 4. The queue pair is drained.
//! 5. The queue pair is destroyed.
//!
//! The memory of a request may be freed when the request has completed, or after the last step.
//!
//! A task polls before it sleeps. A device registers a region in microseconds. Sleeping and waking
//! takes about as long, and the interrupt takes longer.

use super::{
    RegQp,
    State, //
};
use crate::{
    completion::Done,
    prelude::*,
    waiter::Waiter, //
};
use kernel::time::{
    delay::fsleep,
    Delta,
    Instant,
    Monotonic, //
};
use pin_init::stack_pin_init;

/// Time between two checks whether tasks are posting, in milliseconds.
const LOOK: i64 = 10;
const LOOKS_PER_SECOND: u32 = 100;

impl RegQp {
    /// Puts the queue pair into error, and drains it. The device flushes outstanding requests, and
    /// no request is posted any more. Sleeps, at most twice as long as a request may take. Some
    /// requests may not have ended by then. Tasks that wait for these destroy the queue pair, which
    /// ends them.
    pub fn fail(&self) {
        self.sends.break_by(WcStatus::FLUSHED);
        let state = self.state.lock();
        let (State::Present(qp), true) = (&*state, self.up.load(Relaxed)) else {
            return;
        };
        // INVARIANT: Fully ordered before `posting` is looked at.
        self.up.store(false, Relaxed);
        let failed = qp.fail();
        if let Err(error) = failed {
            pr_warn!(
                "{}: queue pair {} can't be put into error: {}\n",
                self.pd.device.name(),
                qp.number(),
                error.to_errno()
            );
        }
        if self.posters_left() && failed.is_ok() {
            qp.drain(self.limit);
        }
    }

    /// Returns the number of tasks that are posting, or are about to find that they may not.
    ///
    /// Fully ordered, which a load is not. So a task that is not counted yet sees earlier stores.
    fn posting(&self) -> u32 {
        self.posting.fetch_add(0, Full)
    }

    /// Waits for the tasks that are posting. Returns true if all of them have returned. Sleeps,
    /// rarely, and at most as long as a request may take.
    fn posters_left(&self) -> bool {
        for _ in 0..self.limit.saturating_mul(LOOKS_PER_SECOND) {
            if self.posting() == 0 {
                return true;
            }
            fsleep(Delta::from_millis(LOOK));
        }
        self.posting() == 0
    }

    /// Destroys the queue pair. Returns true if it was destroyed. No other task may find `up` set.
    /// Sleeps.
    pub(super) fn destroy(&self) -> bool {
        // Without the lock, so that all tasks with requests wait for the posting ones at the same
        // time. No task begins to post after that, since the queue pair is not up.
        if !self.posters_left() {
            // A driver doesn't return. Its task keeps a reference to this, and so the resources.
            return false;
        }
        let mut state = self.state.lock();
        let destroyed = match core::mem::replace(&mut *state, State::Stuck) {
            // If the queue pair can't be destroyed, it is leaked.
            State::Present(qp) => qp.destroy().is_ok(),
            State::Destroyed => true,
            State::Stuck => false,
        };
        if destroyed {
            *state = State::Destroyed;
        }
        destroyed
    }

    /// Waits until all requests of a waiter have completed, or until nothing can complete any more.
    /// Returns an error if they have not completed in time, or were flushed because requests of
    /// other tasks have not.
    pub(super) fn wait(&self, waiter: Pin<&Waiter<'_>>) -> Result<(), WrError> {
        if self.poll(&waiter) {
            // Nobody has its name any more.
            return Ok(());
        }
        self.wait_asleep(waiter)
    }

    /// Waits as [`wait`](Self::wait) does, after polling long enough.
    #[inline(never)]
    fn wait_asleep(&self, waiter: Pin<&Waiter<'_>>) -> Result<(), WrError> {
        let _listening = self.cq.listen();
        stack_pin_init!(let done = Done::new());
        let done = done.into_ref();
        // SAFETY: It stays until this returns, when all has ended, or the waiter has given up.
        if unsafe { waiter.begin_wait(done) } {
            return Ok(());
        }
        let mut over_by = WrError::TimedOut;
        for _ in 0..self.limit {
            if !self.up.load(Relaxed) {
                // Others' requests are to blame.
                over_by = WrError::Flushed;
                break;
            }
            if done.nap() {
                return Ok(());
            }
        }
        // A task that finds the queue pair broken can then read the reason. The log has one
        // message.
        if matches!(over_by, WrError::TimedOut) && !self.late.xchg(true, Full) {
            pr_warn!(
                "{}: a work request did not complete in {} s\n",
                self.pd.device.name(),
                self.limit
            );
        }
        // Does nothing if somebody else has done it.
        self.fail();
        if !done.nap() {
            let destroyed = self.destroy();
            if !waiter.give_up(done) {
                return Err(if destroyed { over_by } else { WrError::Lost });
            }
        }
        match waiter.status() {
            WcStatus::FLUSHED => Err(over_by),
            // It has completed, if late.
            _ => Ok(()),
        }
    }
}

/// Minimum number of polls. Other tasks may use the CPU between two polls, for any time.
const LOOKS: u32 = 8;

/// Time to poll after that, before the task sleeps.
const LOOK_FOR: Delta = Delta::from_micros(100);

impl RegQp {
    /// Polls for a moment, and returns true if all requests of a waiter have completed. If enough
    /// other tasks poll, or a task sleeps, this doesn't poll: then softirq reports completions.
    /// Polling also calls the callbacks of other tasks' requests. Must be called before
    /// [`Waiter::begin_wait`].
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
