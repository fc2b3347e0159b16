// SPDX-License-Identifier: GPL-2.0

//! Unit tests of gates, each for both ways of counting.

#[kernel::macros::kunit_tests(kfabric_gate)]
mod tests {
    use crate::{
        new_irq_lock,
        support::{
            gate::{
                Gate,
                PerCpu,
                Shared,
                Users, //
            },
            workqueue::OwnedQueue, //
        }, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Relaxed,
                Release, //
            },
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    /// Checks the same of gates of both kinds.
    macro_rules! both {
        ($check:ident) => {{
            $check::<PerCpu>()?;
            $check::<Shared>()
        }};
    }

    fn gate<U: Users>() -> Result<Arc<Gate<u32, U>>> {
        Arc::pin_init(Gate::new(7), GFP_KERNEL)
    }

    fn inside<U: Users>(gate: &Gate<u32, U>) -> Option<u32> {
        gate.enter().map(|inside| *inside.get())
    }

    #[test]
    fn open_until_shut() -> Result {
        fn check<U: Users>() -> Result {
            let gate = gate::<U>()?;
            assert_eq!(inside(&gate), Some(7));
            let shut = gate.shut().ok_or(EINVAL)?;
            assert_eq!(*shut.get(), 7);
            assert!(gate.enter().is_none());
            assert!(gate.shut().is_none());
            shut.drain().take_away();
            assert!(gate.enter().is_none());
            gate.wait_gone();
            Ok(())
        }
        both!(check)
    }

    #[test]
    fn empty_until_opened() -> Result {
        fn check<U: Users>() -> Result {
            let gate = Arc::pin_init(Gate::<u32, U>::empty(), GFP_KERNEL)?;
            assert!(gate.enter().is_none());
            assert!(gate.open(1));
            assert!(!gate.open(2));
            assert_eq!(inside(&gate), Some(1));
            let drained = gate.shut().ok_or(EINVAL)?.drain();
            assert!(gate.enter().is_none());
            drained.replace(3);
            assert_eq!(inside(&gate), Some(3));

            let gate = Arc::pin_init(Gate::<u32, U>::empty(), GFP_KERNEL)?;
            assert!(gate.shut().is_none());
            gate.wait_gone();
            assert!(!gate.open(1));
            assert!(gate.enter().is_none());
            Ok(())
        }
        both!(check)
    }

    #[test]
    fn left_shut_and_gone_on_with() -> Result {
        fn check<U: Users>() -> Result {
            let gate = gate::<U>()?;
            assert!(gate.resume().is_none());
            gate.shut().ok_or(EINVAL)?.leave();
            assert!(gate.enter().is_none());
            assert!(gate.shut().is_none());
            let shut = gate.resume().ok_or(EINVAL)?;
            assert!(gate.resume().is_none());
            shut.drain().leave();
            let drained = gate.resume().ok_or(EINVAL)?.drain();
            assert_eq!(*drained.get(), 7);
            drained.take_away();
            assert!(gate.resume().is_none());
            gate.wait_gone();
            Ok(())
        }
        both!(check)
    }

    #[test]
    fn taken_over_by_who_may() -> Result {
        fn check<U: Users>() -> Result {
            let gate = gate::<U>()?;
            gate.shut().ok_or(EINVAL)?.leave();
            assert!(matches!(gate.take_over(|seven| Err(*seven)), Err(7)));
            // As it was.
            gate.resume().ok_or(EINVAL)?.leave();
            let taken = gate.take_over(|_| Ok::<(), u32>(())).map_err(|_| EINVAL)?;
            assert!(gate.resume().is_none());
            taken.ok_or(EINVAL)?.drain().take_away();
            assert!(matches!(gate.take_over(|_| Err(1)), Ok(None)));
            Ok(())
        }
        both!(check)
    }

    #[test]
    fn users_are_counted() -> Result {
        let gate = gate::<Shared>()?;
        let first = gate.enter();
        let second = gate.enter();
        assert!(first.is_some() && second.is_some());
        assert_eq!(gate.users.state.with(|state| state.users), 2);
        drop(first);
        drop(second);
        assert_eq!(gate.users.state.with(|state| state.users), 0);
        Ok(())
    }

    /// Counts how often it is dropped.
    struct Behind(Arc<Atomic<u32>>);

    impl Drop for Behind {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn what_is_behind_is_dropped_once() -> Result {
        fn check<U: Users>() -> Result {
            let dropped = Arc::new(Atomic::new(0_u32), GFP_KERNEL)?;
            let behind = || Behind(dropped.clone());
            let gate = Arc::pin_init(Gate::<_, U>::new(behind()), GFP_KERNEL)?;
            assert!(!gate.open(behind()));
            assert_eq!(dropped.load(Relaxed), 1);
            gate.shut().ok_or(EINVAL)?.drain().replace(behind());
            assert_eq!(dropped.load(Relaxed), 2);
            drop(gate.enter());
            gate.shut().ok_or(EINVAL)?.drain().take_away();
            assert_eq!(dropped.load(Relaxed), 3);
            drop(gate);
            assert_eq!(dropped.load(Relaxed), 3);
            // With the gate, open or shut.
            drop(Arc::pin_init(Gate::<_, U>::new(behind()), GFP_KERNEL)?);
            assert_eq!(dropped.load(Relaxed), 4);
            let gate = Arc::pin_init(Gate::<_, U>::new(behind()), GFP_KERNEL)?;
            gate.shut().ok_or(EINVAL)?.leave();
            drop(gate);
            assert_eq!(dropped.load(Relaxed), 5);
            Ok(())
        }
        both!(check)
    }

    #[test]
    fn whoever_shuts_it_waits_for_those_inside() -> Result {
        fn check<U: Users + Send + Sync + 'static>() -> Result {
            let (gate, step) = (gate::<U>()?, Arc::new(Atomic::new(0_u32), GFP_KERNEL)?);
            let (theirs, said) = (gate.clone(), step.clone());
            // Dropped first, since it waits for the other thread.
            let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
            queue.try_spawn(GFP_KERNEL, move || {
                let inside = theirs.enter();
                said.store(1, Release);
                fsleep(Delta::from_millis(50));
                said.store(2, Release);
                drop(inside);
            })?;
            while step.load(Acquire) == 0 {
                fsleep(Delta::from_millis(1));
            }
            let drained = gate.shut().ok_or(EINVAL)?.drain();
            assert_eq!(step.load(Acquire), 2);
            drained.take_away();
            Ok(())
        }
        both!(check)
    }

    #[test]
    fn entered_and_left_with_interrupts_off() -> Result {
        fn check<U: Users>() -> Result {
            let gate = gate::<U>()?;
            let lock = KBox::pin_init(new_irq_lock!((), c"kfabric_kunit"), GFP_KERNEL)?;
            assert_eq!(lock.with(|_| inside(&gate)), Some(7));
            // In there, and out of it here.
            let held = lock.with(|_| gate.hold());
            assert_eq!(held.as_ref().map(|held| *held.get()), Some(7));
            drop(held);
            // In here, and out of it there.
            let held = gate.hold();
            lock.with(|_| drop(held));
            let drained = gate.shut().ok_or(EINVAL)?.drain();
            assert!(lock.with(|_| gate.enter().is_none()));
            drained.replace(8);
            assert_eq!(lock.with(|_| inside(&gate)), Some(8));
            Ok(())
        }
        both!(check)
    }
}
