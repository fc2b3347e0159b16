// SPDX-License-Identifier: GPL-2.0

//! Unit tests of gates that others go through meanwhile: threads, softirq, an interrupt.

#[kernel::macros::kunit_tests(kfabric_gate_races)]
mod tests {
    use crate::{
        new_irq_lock,
        support::{
            gate::{
                BusyGuard,
                Gate,
                PerCpu,
                Shared,
                Users, //
            },
            irqlock::IrqLock,
            workqueue::OwnedQueue, //
        }, //
    };
    use core::marker::PhantomData;
    use kernel::{
        impl_has_hr_timer,
        prelude::*,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Relaxed,
                Release, //
            },
            Arc,
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

    /// What any thread may use.
    trait Anywhere: Users + Send + Sync + 'static {}

    impl<U: Users + Send + Sync + 'static> Anywhere for U {}

    /// In the interrupt of a timer, where no spinlock of the usual kind may be taken.
    struct Hard;

    /// In softirq, as completions of work requests are.
    struct Soft;

    /// Goes through a gate in the context `C`.
    #[pin_data]
    struct Visitor<U: Anywhere, C> {
        gate: Arc<Gate<u32, U>>,
        /// Somebody who went in before, and is to leave there.
        #[pin]
        request: IrqLock<Option<BusyGuard<u32, U>>>,
        /// What was found behind the gate; 0 if it was shut.
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
        check::<PerCpu>()?;
        check::<Shared>()
    }

    /// As a work request does that ends when the gate is shut already.
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
        check::<PerCpu>()?;
        check::<Shared>()
    }

    const THREADS: u8 = 4;
    const ROUNDS: u32 = 25;

    /// What many threads use, and one takes away again and again.
    struct Used {
        /// Cleared while it is nobody's to use.
        usable: Atomic<bool>,
    }

    /// What the threads have seen.
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
                // Those who had left by then may not have counted that yet.
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
        check::<PerCpu>()?;
        check::<Shared>()
    }
}
