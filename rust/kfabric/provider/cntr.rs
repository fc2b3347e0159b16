// SPDX-License-Identifier: GPL-2.0

//! Counters, and their waiters.
//!
//! Lock order: a counter's lock is a leaf, and is taken with interrupts off. "Any context" below means any context that
//! can take a spinlock.

use crate::{
    prelude::*,
    support::irqlock::{
        self,
        IrqGuard, //
    }, //
};
use kernel::time::Jiffies;

/// A counter of successful and failed operations.
///
/// The consumer's object and each bound region or endpoint keep a reference. After the consumer closes its object, the
/// counter ignores changes. Both numbers wrap.
#[pin_data]
pub struct CntrCore {
    #[pin]
    state: IrqLock<State>,
    /// Notified when a wait may be over.
    #[pin]
    changed: CondVar,
}

/// The numbers and the waiters.
///
/// # Invariants
///
/// `wake_at` is at most the threshold of each waiter that sleeps and was not notified.
struct State {
    value: u64,
    errors: u64,
    /// The number of changes of `errors`.
    failures: u64,
    waiters: usize,
    /// The value at which to wake the waiters. A change of `errors` wakes them, too.
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

    /// Sets the value. Returns whether the caller must wake the waiters.
    fn set(&mut self, value: u64) -> bool {
        self.value = value;
        self.wake_at.take_if(|at| value >= *at).is_some()
    }

    /// Sets the number of errors. Returns whether the caller must wake the waiters.
    fn set_err(&mut self, errors: u64) -> bool {
        if self.errors == errors {
            return false;
        }
        self.errors = errors;
        self.failures = self.failures.wrapping_add(1);
        self.wake_at.take().is_some()
    }
}

impl CntrCore {
    /// Creates a counter with the value 0.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_irq_lock!(State::NEW, c"kfabric_counter"),
            changed <- new_condvar!("kfabric_counter"),
        })
    }

    /// Adds `n` successful operations. Any context.
    pub fn add(&self, n: u64) {
        self.change(|state| state.set(state.value.wrapping_add(n)));
    }

    /// Adds `n` failed operations. Any context.
    pub fn add_err(&self, n: u64) {
        self.change(|state| state.set_err(state.errors.wrapping_add(n)));
    }

    /// Returns whether the consumer has the counter open. Any context.
    pub fn is_open(&self) -> bool {
        self.state.with(|state| state.open)
    }

    /// Returns the number of successful operations. Any context.
    pub(crate) fn value(&self) -> u64 {
        self.state.with(|state| state.value)
    }

    /// Returns the number of failed operations. Any context.
    pub(crate) fn errors(&self) -> u64 {
        self.state.with(|state| state.errors)
    }

    /// Sets the number of successful operations. Any context.
    pub(crate) fn set(&self, value: u64) {
        self.change(|state| state.set(value));
    }

    /// Sets the number of failed operations. Any context.
    pub(crate) fn set_err(&self, errors: u64) {
        self.change(|state| state.set_err(errors));
    }

    /// Closes the counter, which ignores later changes. Any context.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: a thread waits.
    pub(crate) fn close(&self) -> Result<(), Errno> {
        self.state.with(|state| match state.waiters {
            0 => {
                state.open = false;
                Ok(())
            }
            _ => Err(Errno::EBUSY),
        })
    }

    /// Sleeps until the value is `threshold` or more. Without a timeout it waits forever.
    ///
    /// # Errors
    ///
    /// - `EAVAIL`: the number of errors has changed.
    /// - `EINTR`: the thread has a signal.
    /// - `ETIMEDOUT`: the timeout has expired.
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
            // INVARIANT: `wake_at` is at most `threshold`, and doesn't grow.
            state.wake_at = Some(state.wake_at.map_or(threshold, |at| at.min(threshold)));
            signal = irqlock::wait(&self.changed, state, &mut timeout);
        }
    }

    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        self.state.with(|state| {
            // Notify under the lock, because a waiter may close and drop the counter as soon as the lock is free.
            if state.open && change(state) {
                self.changed.notify_all();
            }
        });
    }
}

#[kernel::macros::kunit_tests(kfabric_counter)]
mod tests {
    use super::{
        CntrCore,
        State, //
    };
    use crate::prelude::*;
    use kernel::time::msecs_to_jiffies;

    fn counter() -> Result<Arc<CntrCore>> {
        Arc::pin_init(CntrCore::new(), GFP_KERNEL)
    }

    #[test]
    fn numbers_are_apart_and_wrap() -> Result {
        let counter = counter()?;
        counter.add(3);
        counter.add(0);
        counter.add_err(2);
        assert_eq!((counter.value(), counter.errors()), (3, 2));
        counter.set(u64::MAX);
        counter.set_err(u64::MAX);
        counter.add(2);
        counter.add_err(1);
        assert_eq!((counter.value(), counter.errors()), (1, 0));
        Ok(())
    }

    #[test]
    fn waiting_ends_at_once_or_in_time() -> Result {
        let counter = counter()?;
        counter.add(5);
        counter.add_err(1);
        // Failures of before don't count.
        assert_eq!(counter.wait(5, None), Ok(()));
        assert_eq!(counter.wait(0, Some(0)), Ok(()));
        assert_eq!(counter.wait(6, Some(0)), Err(Errno::ETIMEDOUT));
        let soon = Some(msecs_to_jiffies(2));
        assert_eq!(counter.wait(6, soon), Err(Errno::ETIMEDOUT));
        assert_eq!(counter.state.with(|state| state.waiters), 0);
        Ok(())
    }

    #[test]
    fn waiters_are_woken_when_it_matters() {
        let mut state = State::NEW;
        assert!(!state.set(10) && !state.set_err(1));
        state.wake_at = Some(20);
        assert!(!state.set(19));
        assert!(!state.set_err(1));
        assert!(state.set(20));
        // Once: who goes on waiting says so.
        assert!(!state.set(21));
        state.wake_at = Some(30);
        assert!(state.set_err(0));
        assert!(state.failures == 2 && state.wake_at.is_none());
    }

    #[test]
    fn nothing_counts_after_close() -> Result {
        let counter = counter()?;
        counter.add(1);
        counter.state.with(|state| state.waiters = 1);
        assert_eq!(counter.close(), Err(Errno::EBUSY));
        assert!(counter.is_open());
        counter.state.with(|state| state.waiters = 0);
        assert_eq!(counter.close(), Ok(()));
        counter.add(1);
        counter.add_err(1);
        assert!(!counter.is_open());
        assert_eq!((counter.value(), counter.errors()), (1, 0));
        Ok(())
    }
}
