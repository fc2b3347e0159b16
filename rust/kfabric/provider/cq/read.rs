// SPDX-License-Identifier: GPL-2.0

//! Reading a completion queue, and waiting for something to read.
//!
//! Lock order: as in [`cq`](super).

use super::{
    completion::{
        Completion,
        Failure, //
    },
    CompletionQueue,
    State, //
};
use crate::support::irqlock::IrqGuard;
use kernel::{
    sync::CondVarTimeoutResult,
    time::Jiffies, //
};

/// What a reader of completions gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// So many completions, at least one.
    Done(usize),
    /// There is nothing.
    Empty,
    /// There is a failure to read about first.
    Failure,
    /// There is nothing, and a signal to the thread has ended the wait for it.
    Interrupted,
}

/// How many completions are copied at a time with interrupts off.
pub(super) const BATCH: usize = 64;

/// Why a wait is over before there is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The time is over, or somebody wants the waiter back.
    Enough,
    /// There is a signal for the thread.
    Interrupted,
}

impl CompletionQueue {
    /// Gives `out` the next completions, at most `most`, which is not 0, and up to the first failure.
    /// Any context; `out` is called with interrupts off.
    pub(crate) fn read(&self, most: usize, mut out: impl FnMut(&Completion)) -> Reading {
        let first = self.state.with(|state| self.begin(state, most, &mut out));
        self.go_on(first, most, out)
    }

    /// As [`read`](Self::read), but waits until there are `threshold` entries or a failure, for as
    /// long as `left` says or for ever; then it gives what there is. Sleeps.
    pub(crate) fn wait_and_read(
        &self,
        most: usize,
        threshold: usize,
        left: Option<Jiffies>,
        mut out: impl FnMut(&Completion),
    ) -> Reading {
        // More than there is room for could never come.
        let threshold = threshold.clamp(1, self.size);
        let first = self.state.with(|state| {
            state.waits.waiting += 1;
            let end = self.wait(state, threshold, left);
            state.waits.waiting -= 1;
            if end == Some(End::Interrupted) && state.ring.len() == 0 {
                return Reading::Interrupted;
            }
            self.begin(state, most, &mut out)
        });
        self.go_on(first, most, out)
    }

    /// Takes the failure out that is next, if one is. Any context.
    pub(crate) fn read_failure(&self) -> Option<Failure> {
        self.state.with(|state| {
            let failure = state.ring.pop_failed();
            self.give_back(failure.iter().count());
            failure
        })
    }

    /// Brings those back who wait; if nobody does, the next who would have to. Any context.
    pub(crate) fn signal(&self) {
        self.state.with(|state| {
            if state.waits.signal() {
                self.readable.notify_all();
            }
        });
    }

    /// Reads as many as are copied at a time, and hears of it where there is nothing.
    fn begin(&self, state: &mut State, most: usize, out: impl FnMut(&Completion)) -> Reading {
        match self.batch(state, most, out) {
            0 if state.ring.len() == 0 => {
                state.calls.found_empty();
                Reading::Empty
            }
            0 => Reading::Failure,
            some => Reading::Done(some),
        }
    }

    /// Reads what is left of `most` after the first batch.
    fn go_on(&self, first: Reading, most: usize, mut out: impl FnMut(&Completion)) -> Reading {
        let Reading::Done(mut all) = first else {
            return first;
        };
        let mut last = all;
        while last == BATCH && all < most {
            last = self
                .state
                .with(|state| self.batch(state, most - all, &mut out));
            all += last;
        }
        Reading::Done(all)
    }

    fn batch(&self, state: &mut State, most: usize, mut out: impl FnMut(&Completion)) -> usize {
        let mut read = 0;
        while read < most.min(BATCH) {
            let Some(done) = state.ring.pop_done() else {
                break;
            };
            out(&done);
            read += 1;
        }
        self.give_back(read);
        read
    }

    /// Sleeps until there is enough to read. Says what else has ended that.
    fn wait(
        &self,
        state: &mut IrqGuard<'_, State>,
        threshold: usize,
        mut left: Option<Jiffies>,
    ) -> Option<End> {
        let mut end = None;
        let mut seen = None;
        while state.ring.len() < threshold && !state.ring.has_failure() {
            if end.is_some() {
                return end;
            }
            if left == Some(0) || state.waits.is_signalled(&mut seen) {
                return Some(End::Enough);
            }
            state.waits.wake_at(threshold);
            let Some(jiffies) = left else {
                let interrupted = self.readable.wait_interruptible(state);
                end = interrupted.then_some(End::Interrupted);
                continue;
            };
            left = match self.readable.wait_interruptible_timeout(state, jiffies) {
                CondVarTimeoutResult::Timeout => Some(0),
                CondVarTimeoutResult::Woken { jiffies } => Some(jiffies),
                CondVarTimeoutResult::Signal { jiffies } => {
                    end = Some(End::Interrupted);
                    Some(jiffies)
                }
            };
        }
        None
    }
}
