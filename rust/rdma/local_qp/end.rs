// SPDX-License-Identifier: GPL-2.0

//! How a queue pair ends, and what is under way on it.
//!
//! In this order: nobody begins to post any more, the queue pair goes into error, those who are
//! posting come back, it is drained, it is destroyed. What a request refers to may be freed when
//! the request has completed, or after the last of these.

use kernel::{
    prelude::*,
    sync::atomic::{
        Full,
        Relaxed, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::{
    LocalQp,
    State, //
};
use crate::{
    completion::Done,
    waiter::Waiter,
    wc::{
        WcStatus,
        WrError, //
    }, //
};
use pin_init::stack_pin_init;

/// How long to sleep between looks at who is posting, in milliseconds.
const LOOK: i64 = 10;
const LOOKS_PER_SECOND: u32 = 100;

impl LocalQp {
    /// Puts the queue pair into error, and drains it: what is outstanding gets flushed, and what
    /// comes from now on is not posted. Sleeps, at most as long as a request may take, or as the
    /// driver does, if it drains queues itself.
    pub fn fail(&self) -> Result {
        self.sends.break_by(WcStatus::FLUSHED);
        let _ending = self.ending.lock();
        let failed = {
            let mut state = self.state.lock();
            match core::mem::replace(&mut *state, State::Destroyed) {
                State::Up(qp) => {
                    // INVARIANT: Fully ordered before `posting` is looked at.
                    self.up.store(false, Relaxed);
                    let failed = qp.fail();
                    *state = State::Failed(qp);
                    failed
                }
                other => {
                    *state = other;
                    return Ok(());
                }
            }
        };
        if self.posters_left() && failed.is_ok() {
            if let State::Failed(qp) = &*self.state.lock() {
                qp.drain(self.limit);
            }
        }
        failed
    }

    /// How many are posting, or are about to find that they may not.
    ///
    /// Fully ordered, which a load is not: whoever is not counted yet sees what was said before.
    fn posting(&self) -> u32 {
        self.posting.fetch_add(0, Full)
    }

    /// Waits for those who are posting, and returns whether there is none any more. Sleeps, hardly
    /// ever and at most as long as a request may take.
    fn posters_left(&self) -> bool {
        for _ in 0..self.limit.saturating_mul(LOOKS_PER_SECOND) {
            if self.posting() == 0 {
                return true;
            }
            fsleep(Delta::from_millis(LOOK));
        }
        self.posting() == 0
    }

    /// Destroys the queue pair, and returns whether that could be done. Sleeps.
    pub(super) fn destroy(&self) -> bool {
        let _ending = self.ending.lock();
        if !self.posters_left() {
            // A driver doesn't come back. It keeps us here, and so all that is ours.
            return false;
        }
        let mut state = self.state.lock();
        let destroyed = match core::mem::replace(&mut *state, State::Stuck) {
            State::Up(qp) | State::Failed(qp) => {
                // It is leaked if it can't be.
                qp.destroy().is_ok()
            }
            State::Destroyed => true,
            State::Stuck => false,
        };
        if destroyed {
            *state = State::Destroyed;
        }
        destroyed
    }

    /// Waits until all requests of a waiter have completed, or else nothing completes any more.
    pub(super) fn wait(&self, waiter: Pin<&Waiter<'_>>) -> Result<(), WrError> {
        if self.poll(&waiter) {
            // Nobody has its name any more.
            return Ok(());
        }
        self.wait_asleep(waiter)
    }

    /// As [`wait`](Self::wait), of who has looked for it long enough.
    #[inline(never)]
    fn wait_asleep(&self, waiter: Pin<&Waiter<'_>>) -> Result<(), WrError> {
        let _listening = self.cq.listen();
        stack_pin_init!(let done = Done::new());
        let done = done.into_ref();
        // SAFETY: It stays until this returns, when all has ended, or the waiter has given up.
        if unsafe { waiter.begin_wait(done) } {
            return Ok(());
        }
        for _ in 0..self.limit {
            if done.nap() {
                return Ok(());
            }
            if !matches!(*self.state.lock(), State::Up(_)) {
                // Drained, or gone: what has not completed by now is not going to.
                break;
            }
        }
        // Doing nothing if somebody else has done it. That it failed has been logged.
        let _ = self.fail();
        if done.nap() {
            return Ok(());
        }
        let destroyed = self.destroy();
        if waiter.give_up(done) && !waiter.is_gone() {
            return Ok(());
        }
        pr_warn!(
            "{}: a work request did not complete in {} s\n",
            self.pd.device().name(),
            self.limit
        );
        Err(if destroyed {
            WrError::TimedOut
        } else {
            WrError::Lost
        })
    }
}
