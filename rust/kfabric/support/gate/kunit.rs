// SPDX-License-Identifier: GPL-2.0

//! Unit tests of gates, for both ways of counting: alone, and against threads, softirqs and
//! interrupts.

#[kernel::macros::kunit_tests(kfabric_gate)]
mod tests {
    use crate::{
        prelude::*,
        support::{
            gate::{
                BusyGuard,
                Gate,
                PerCpu,
                Shared,
                Users, //
            },
            workqueue::OwnedQueue, //
        }, //
    };
    use kernel::{
        impl_has_hr_timer,
        sync::{
            atomic::{
                Acquire,
                Release, //
            },
            ArcBorrow, //
        },
        time::{
            delay::fsleep,
            hrtimer::{
                HasHrTimer,
                HrTimer,
                HrTimerCallback,
                HrTimerCallbackContext,
                HrTimerPointer,
                HrTimerRestart,
                RelativeHardMode,
                RelativeSoftMode, //
            },
            Delta,
            Monotonic, //
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
            assert_eq!(gate.shut().ok_or(EINVAL)?.drain().reset(), Some(3));
            assert!(gate.enter().is_none());
            assert!(gate.open(4));
            assert_eq!(inside(&gate), Some(4));

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
        assert_eq!(gate.users.users.load(Relaxed), 2 * 2);
        drop(first);
        drop(second);
        assert_eq!(gate.users.users.load(Relaxed), 0);
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

    /// A count that any thread may use.
    trait Anywhere: Users + Send + Sync + 'static {}

    impl<U: Users + Send + Sync + 'static> Anywhere for U {}

    /// The context of a hard interrupt: no spinlock of the usual kind may be taken.
    struct Hard;

    /// The context of a softirq, as of work completions.
    struct Soft;

    /// Goes through a gate in the context `C`.
    #[pin_data]
    struct Visitor<U: Anywhere, C> {
        gate: Arc<Gate<u32, U>>,
        /// Somebody who went in before, and is to leave there.
        #[pin]
        request: IrqLock<Option<BusyGuard<u32, U>>>,
        /// The value behind the gate; 0 if the gate was shut.
        found: Atomic<u32>,
        done: Atomic<bool>,
        #[pin]
        timer: HrTimer<Self>,
        _context: PhantomData<C>,
    }

    impl_has_hr_timer! {
        impl{U: Anywhere} HasHrTimer<Self> for Visitor<U, Hard> {
            mode: RelativeHardMode<Monotonic>, field: self.timer
        }
    }

    impl_has_hr_timer! {
        impl{U: Anywhere} HasHrTimer<Self> for Visitor<U, Soft> {
            mode: RelativeSoftMode<Monotonic>, field: self.timer
        }
    }

    impl<U: Anywhere> HrTimerCallback for Visitor<U, Hard> {
        type Pointer<'a> = Arc<Self>;

        fn run(this: ArcBorrow<'_, Self>, _: HrTimerCallbackContext<'_, Self>) -> HrTimerRestart {
            // SAFETY: Only asks.
            if unsafe { kfi_bindings::kfi_helper_irqs_disabled() } {
                this.visit();
            }
            this.done.store(true, Release);
            HrTimerRestart::NoRestart
        }
    }

    impl<U: Anywhere> HrTimerCallback for Visitor<U, Soft> {
        type Pointer<'a> = Arc<Self>;

        fn run(this: ArcBorrow<'_, Self>, _: HrTimerCallbackContext<'_, Self>) -> HrTimerRestart {
            this.visit();
            this.done.store(true, Release);
            let request = this.request.with(|request| request.take());
            drop(request);
            HrTimerRestart::NoRestart
        }
    }

    impl<U: Anywhere, C> Visitor<U, C> {
        fn visit(&self) {
            let inside = self.gate.enter();
            let found = inside.as_ref().map_or(0, |inside| *inside.get());
            self.found.store(found, Relaxed);
        }

        fn new() -> Result<Arc<Self>>
        where
            Self: HrTimerCallback + HasHrTimer<Self>,
        {
            let gate = Arc::pin_init(Gate::new(7), GFP_KERNEL)?;
            Arc::pin_init(
                pin_init!(Self {
                    gate,
                    request <- new_irq_lock!(None, c"kfabric_kunit"),
                    found: Atomic::new(0),
                    done: Atomic::new(false),
                    timer <- HrTimer::new(),
                    _context: PhantomData,
                }),
                GFP_KERNEL,
            )
        }

        fn wait(&self) {
            while !self.done.load(Acquire) {
                fsleep(Delta::from_millis(1));
            }
        }
    }

    #[test]
    fn entered_and_left_in_an_interrupt() -> Result {
        let visitor = Visitor::<PerCpu, Hard>::new()?;
        let timer = visitor.clone().start(Delta::from_millis(1));
        visitor.wait();
        assert_eq!(visitor.found.load(Relaxed), 7);
        drop(timer);
        let drained = visitor.gate.shut().ok_or(EINVAL)?.drain();
        visitor.done.store(false, Relaxed);
        let _timer = visitor.clone().start(Delta::from_millis(1));
        visitor.wait();
        assert_eq!(visitor.found.load(Relaxed), 0);
        drained.take_away();
        Ok(())
    }

    #[test]
    fn entered_and_left_in_softirq() -> Result {
        fn check<U: Anywhere>() -> Result {
            let visitor = Visitor::<U, Soft>::new()?;
            let _timer = visitor.clone().start(Delta::from_millis(1));
            visitor.wait();
            assert_eq!(visitor.found.load(Relaxed), 7);
            visitor.gate.shut().ok_or(EINVAL)?.drain().take_away();
            Ok(())
        }
        both!(check)
    }

    /// Leaves a shut gate in softirq, as a work completion does.
    #[test]
    fn who_is_inside_leaves_in_softirq() -> Result {
        fn check<U: Anywhere>() -> Result {
            let visitor = Visitor::<U, Soft>::new()?;
            let held = visitor.gate.hold();
            assert!(held.is_some());
            visitor.request.with(|request| **request = held);
            let shut = visitor.gate.shut().ok_or(EINVAL)?;
            let _timer = visitor.clone().start(Delta::from_millis(100));
            let drained = shut.drain();
            assert!(visitor.done.load(Acquire));
            assert_eq!(visitor.found.load(Relaxed), 0);
            drained.take_away();
            Ok(())
        }
        both!(check)
    }

    const THREADS: u8 = 4;
    const ROUNDS: u32 = 25;

    /// A value that many threads use, and that one thread takes away again and again.
    struct Used {
        /// Cleared while it is nobody's to use.
        usable: Atomic<bool>,
    }

    /// The observations of the threads.
    struct Seen {
        visits: Atomic<u32>,
        refused: Atomic<u32>,
        misused: Atomic<u32>,
        stop: Atomic<bool>,
    }

    /// Uses it until told to stop; now and then it sleeps meanwhile.
    fn use_it<U: Anywhere>(gate: &Gate<Used, U>, seen: &Seen) {
        let mut turn = 0_u32;
        while !seen.stop.load(Relaxed) {
            turn = turn.wrapping_add(1);
            match gate.enter() {
                Some(inside) => {
                    let before = inside.get().usable.load(Relaxed);
                    if turn % 64 == 0 {
                        fsleep(Delta::from_millis(2));
                    }
                    if !(before && inside.get().usable.load(Relaxed)) {
                        seen.misused.fetch_add(1, Relaxed);
                    }
                    drop(inside);
                    seen.visits.fetch_add(1, Relaxed);
                }
                None => {
                    seen.refused.fetch_add(1, Relaxed);
                    fsleep(Delta::from_micros(200));
                }
            }
        }
    }

    #[test]
    fn nobody_is_inside_of_a_drained_gate() -> Result {
        fn check<U: Anywhere>() -> Result {
            let used = || Used {
                usable: Atomic::new(true),
            };
            let gate = Arc::pin_init(Gate::<_, U>::new(used()), GFP_KERNEL)?;
            let seen = Seen {
                visits: Atomic::new(0),
                refused: Atomic::new(0),
                misused: Atomic::new(0),
                stop: Atomic::new(false),
            };
            let seen = Arc::new(seen, GFP_KERNEL)?;
            let queue = OwnedQueue::new(c"kfabric_kunit", THREADS)?;
            for _ in 0..THREADS {
                let (gate, seen) = (gate.clone(), seen.clone());
                queue.try_spawn(GFP_KERNEL, move || use_it(&gate, &seen))?;
            }
            for _ in 0..ROUNDS {
                let visits = seen.visits.load(Relaxed);
                while seen.visits.load(Relaxed).wrapping_sub(visits) < 100 {
                    fsleep(Delta::from_millis(1));
                }
                let shut = gate.shut().ok_or(EINVAL)?;
                let drained = shut.drain();
                drained.get().usable.store(false, Relaxed);
                let (refused, visits) = (seen.refused.load(Relaxed), seen.visits.load(Relaxed));
                // Each of them tries to come in meanwhile.
                while seen.refused.load(Relaxed).wrapping_sub(refused) < u32::from(THREADS) {
                    fsleep(Delta::from_millis(1));
                }
                // A thread that had left may not have counted its visit yet.
                let late = seen.visits.load(Relaxed).wrapping_sub(visits);
                assert!(late <= u32::from(THREADS));
                drained.replace(used());
            }
            gate.shut().ok_or(EINVAL)?.drain().take_away();
            seen.stop.store(true, Relaxed);
            drop(queue);
            assert_eq!(seen.misused.load(Relaxed), 0);
            Ok(())
        }
        both!(check)
    }
}
