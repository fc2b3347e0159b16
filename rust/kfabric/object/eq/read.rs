// SPDX-License-Identifier: GPL-2.0

//! Reading an event queue, and waiting for something to read.
//!
//! Lock order: as in `queue`.

use super::{
    event::{
        Event,
        Failure, //
    },
    queue::{
        Queue,
        State, //
    },
    ring::First, //
};
use crate::support::{
    irqlock::IrqGuard,
    refusal::Refusal, //
};
use kernel::{
    sync::CondVarTimeoutResult,
    time::Jiffies, //
};

/// What a reader of events gets, an event as an `R`.
pub(super) enum Reading<R> {
    /// There is nothing.
    Empty,
    /// An event.
    Event(R),
    /// There is a failure to read about first.
    Failure,
    /// Events were lost here.
    Lost,
    /// There is nothing, and a signal has ended the wait for it.
    Signal,
}

impl Queue {
    /// Gives the next event to `out`, and takes it out of the queue if that is all right and the
    /// reader doesn't only `peek`. Any context.
    ///
    /// # Errors
    ///
    /// - Those of `out`.
    pub(super) fn read<R>(
        &self,
        peek: bool,
        out: impl FnOnce(&Event) -> Result<R, Refusal>,
    ) -> Result<Reading<R>, Refusal> {
        self.state.with(|state| {
            let read = state.read(peek, out);
            if matches!(read, Ok(Reading::Empty)) {
                state.found_empty();
            }
            read
        })
    }

    /// As [`read`](Self::read), but waits for an event, for as long as `left` says or for ever.
    /// Sleeps.
    pub(super) fn wait_and_read<R>(
        &self,
        peek: bool,
        left: Option<Jiffies>,
        out: impl FnMut(&Event) -> Result<R, Refusal>,
    ) -> Result<Reading<R>, Refusal> {
        self.state
            .with(|state| self.wait_and_read_locked(state, peek, left, out))
    }

    fn wait_and_read_locked<R>(
        &self,
        state: &mut IrqGuard<'_, State>,
        peek: bool,
        mut left: Option<Jiffies>,
        mut out: impl FnMut(&Event) -> Result<R, Refusal>,
    ) -> Result<Reading<R>, Refusal> {
        let mut signal = false;
        loop {
            match state.read(peek, &mut out)? {
                Reading::Empty if left == Some(0) => {
                    state.found_empty();
                    return Ok(Reading::Empty);
                }
                Reading::Empty => (),
                read => return Ok(read),
            }
            if signal {
                return Ok(Reading::Signal);
            }
            match left {
                None => signal = self.readable.wait_interruptible(state),
                Some(jiffies) => {
                    let readable = &self.readable;
                    left = match readable.wait_interruptible_timeout(state, jiffies) {
                        CondVarTimeoutResult::Timeout => Some(0),
                        CondVarTimeoutResult::Woken { jiffies } => Some(jiffies),
                        CondVarTimeoutResult::Signal { jiffies } => {
                            signal = true;
                            // Not 0, which would look like the end of the time.
                            Some(jiffies.max(1))
                        }
                    }
                }
            }
        }
    }

    /// Returns what is known of the next operation that failed, and takes it out of the queue unless
    /// the reader only `peek`s. Any context.
    pub(super) fn read_failure(&self, peek: bool) -> First<Failure> {
        self.state.with(|state| {
            let read = match state.failures.first() {
                First::Nothing => return First::Nothing,
                First::Lost => First::Lost,
                First::Entry(failure) => First::Entry(failure.clone()),
            };
            if let First::Entry(failure) = &read {
                // The reader may look at what it points to, until the next one is read.
                state.shown.clone_from(&failure.data);
            }
            if !peek {
                state.failures.advance();
            }
            read
        })
    }
}

impl State {
    /// As [`Queue::read`], but nobody hears of it where there is nothing.
    fn read<R>(
        &mut self,
        peek: bool,
        out: impl FnOnce(&Event) -> Result<R, Refusal>,
    ) -> Result<Reading<R>, Refusal> {
        if !self.failures.is_empty() {
            return Ok(Reading::Failure);
        }
        let read = match self.events.first() {
            First::Nothing => return Ok(Reading::Empty),
            First::Lost => Reading::Lost,
            First::Entry(event) => Reading::Event(out(event)?),
        };
        if !peek {
            if let Some(event) = self.events.advance() {
                event.given();
            }
        }
        Ok(read)
    }
}
