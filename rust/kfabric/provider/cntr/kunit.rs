// SPDX-License-Identifier: GPL-2.0

//! Unit tests of counters.

#[kernel::macros::kunit_tests(kfabric_counter)]
mod tests {
    use crate::{
        provider::cntr::{
            Counter,
            State, //
        },
        support::errno::Errno, //
    };
    use kernel::{
        prelude::*,
        sync::Arc,
        time::msecs_to_jiffies, //
    };

    fn counter() -> Result<Arc<Counter>> {
        Arc::pin_init(Counter::new(), GFP_KERNEL)
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
