// SPDX-License-Identifier: GPL-2.0

//! What a counter counts, and who waits for it.
//!
//! Lock order: a counter's lock is a leaf. It is taken with interrupts off, in any context in which
//! a spinlock may be taken, which is what "any context" means below.

mod kunit;

use crate::{
    new_irq_lock,
    support::{
        errno::Errno,
        irqlock::{
            IrqGuard,
            IrqLock, //
        }, //
    }, //
};
use kernel::{
    new_condvar,
    prelude::*,
    sync::{
        CondVar,
        CondVarTimeoutResult, //
    },
    time::Jiffies, //
};

/// A counter: how many operations ended well, and how many failed.
///
/// The consumer has it by its `struct kfid_cntr`, a region that it is bound to by an `Arc` of its
/// own. So a region may outlive the counter; then it counts in vain.
///
/// Both numbers go on from 0 after `u64::MAX`.
#[pin_data]
pub struct Counter {
    #[pin]
    state: IrqLock<State>,
    /// Notified when waiters may have something to wake up for.
    #[pin]
    changed: CondVar,
}

/// The numbers, and what wakes those who wait.
///
/// # Invariants
///
/// `wake_at` is not above the threshold of any waiter that sleeps and was not notified.
struct State {
    value: u64,
    errors: u64,
    /// How often `errors` has changed.
    failures: u64,
    waiters: usize,
    /// The value at which waiters are to be woken, or when `errors` changes.
    wake_at: Option<u64>,
    open: bool,
}

impl State {
    const NEW: Self = Self {
        value: 0,
        errors: 0,
        failures: 0,
        waiters: 0,
        wake_at: None,
        open: true,
    };

    /// Changes the value; `true` if waiters are to be woken.
    fn set(&mut self, value: u64) -> bool {
        self.value = value;
        self.wake_at.take_if(|at| value >= *at).is_some()
    }

    /// Changes the number of failures; `true` if waiters are to be woken.
    fn set_err(&mut self, errors: u64) -> bool {
        if self.errors == errors {
            return false;
        }
        self.errors = errors;
        self.failures = self.failures.wrapping_add(1);
        self.wake_at.take().is_some()
    }
}

impl Counter {
    /// A counter of nothing yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_irq_lock!(State::NEW, c"kfabric_counter"),
            changed <- new_condvar!("kfabric_counter"),
        })
    }

    /// Counts `n` operations that ended well. Any context.
    pub fn add(&self, n: u64) {
        self.change(|state| state.set(state.value.wrapping_add(n)));
    }

    /// Counts `n` operations that failed. Any context.
    pub fn add_err(&self, n: u64) {
        self.change(|state| state.set_err(state.errors.wrapping_add(n)));
    }

    /// Has its consumer not closed it yet? Any context.
    pub fn is_open(&self) -> bool {
        self.state.with(|state| state.open)
    }

    /// How many operations ended well. Any context.
    pub(crate) fn value(&self) -> u64 {
        self.state.with(|state| state.value)
    }

    /// How many operations failed. Any context.
    pub(crate) fn errors(&self) -> u64 {
        self.state.with(|state| state.errors)
    }

    /// Sets how many ended well. Any context.
    pub(crate) fn set(&self, value: u64) {
        self.change(|state| state.set(value));
    }

    /// Sets how many failed. Any context.
    pub(crate) fn set_err(&self, errors: u64) {
        self.change(|state| state.set_err(errors));
    }

    /// From here on nothing is counted; `EBUSY` while somebody waits. Any context.
    pub(crate) fn close(&self) -> Result<(), Errno> {
        self.state.with(|state| match state.waiters {
            0 => {
                state.open = false;
                Ok(())
            }
            _ => Err(Errno::EBUSY),
        })
    }

    /// Sleeps until the value is `threshold` or more; `None` waits for ever.
    ///
    /// Fails with `EAVAIL` if the number of failures changes meanwhile, with `EINTR` on a signal,
    /// and with `ETIMEDOUT`.
    pub(crate) fn wait(&self, threshold: u64, timeout: Option<Jiffies>) -> Result<(), Errno> {
        self.state.with(|state| {
            state.waiters += 1;
            let waited = self.wait_locked(state, threshold, timeout);
            state.waiters -= 1;
            waited
        })
    }

    fn wait_locked(
        &self,
        state: &mut IrqGuard<'_, State>,
        threshold: u64,
        mut timeout: Option<Jiffies>,
    ) -> Result<(), Errno> {
        let failures = state.failures;
        let mut signal = false;
        loop {
            if state.value >= threshold {
                return Ok(());
            }
            if state.failures != failures {
                return Err(Errno::EAVAIL);
            }
            if signal {
                return Err(Errno::EINTR);
            }
            if timeout == Some(0) {
                return Err(Errno::ETIMEDOUT);
            }
            // INVARIANT: Not above this threshold, nor above what it was for others.
            state.wake_at = Some(state.wake_at.map_or(threshold, |at| at.min(threshold)));
            (signal, timeout) = self.sleep(state, timeout);
        }
    }

    /// Sleeps until notified, or for no reason. Says whether there is a signal, and how much of the
    /// time is left.
    fn sleep(
        &self,
        state: &mut IrqGuard<'_, State>,
        timeout: Option<Jiffies>,
    ) -> (bool, Option<Jiffies>) {
        let Some(jiffies) = timeout else {
            return (self.changed.wait_interruptible(state), None);
        };
        match self.changed.wait_interruptible_timeout(state, jiffies) {
            CondVarTimeoutResult::Timeout => (false, Some(0)),
            CondVarTimeoutResult::Woken { jiffies } => (false, Some(jiffies)),
            CondVarTimeoutResult::Signal { jiffies } => (true, Some(jiffies)),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        self.state.with(|state| {
            // Under the lock: who waited may close the counter, and let it go, as soon as it is
            // free.
            if state.open && change(state) {
                self.changed.notify_all();
            }
        });
    }
}
