// SPDX-License-Identifier: GPL-2.0

//! Unit tests of completion queues: places, order, reading and waiting.

mod calls;
#[cfg(CONFIG_KUNIT = "y")]
mod common;

#[kernel::macros::kunit_tests(kfabric_cq)]
mod tests {
    use crate::{
        provider::cq::{
            kunit::common::*,
            wakeups::Waits,
            *, //
        },
        support::workqueue::OwnedQueue, //
    };
    use kernel::time::msecs_to_jiffies;

    #[test]
    fn in_order_and_round_and_round() -> Result {
        let queue = CqCore::new(3, None, None)?;
        for start in 0..10 {
            complete(&queue, start)?;
            fail(&queue, start + 1)?;
            complete(&queue, start + 2)?;
            // A failure is where it came.
            assert!(queue.read_failure().is_none());
            assert_eq!(read(&queue, 9), Ok(vec(&[start])?));
            assert_eq!(read(&queue, 9), Err(CqRead::Failure));
            assert_eq!(queue.read_failure(), Some(failure(start + 1)));
            assert!(queue.read_failure().is_none());
            assert_eq!(read(&queue, 9), Ok(vec(&[start + 2])?));
            assert_eq!(read(&queue, 9), Err(CqRead::Empty));
        }
        Ok(())
    }

    #[test]
    fn places_are_taken_until_read() -> Result {
        let queue = CqCore::new(3, Some(5), None)?;
        assert_eq!((queue.size(), queue.cpu()), (3, Some(5)));
        let first = queue.reserve().ok_or(EINVAL)?;
        let second = queue.reserve().ok_or(EINVAL)?;
        let third = queue.reserve().ok_or(EINVAL)?;
        assert!(queue.reserve().is_none());
        // One that was completed has its place still.
        first.complete(done(1));
        assert!(queue.reserve().is_none());
        // One that says nothing hasn't.
        drop(second);
        let fourth = queue.reserve().ok_or(EINVAL)?;
        assert!(queue.reserve().is_none());
        third.fail(failure(2));
        assert_eq!(read(&queue, 1), Ok(vec(&[1])?));
        complete(&queue, 3)?;
        assert!(queue.reserve().is_none());
        assert_eq!(queue.read_failure(), Some(failure(2)));
        drop(queue.reserve().ok_or(EINVAL)?);
        drop(fourth);
        assert_eq!(read(&queue, 9), Ok(vec(&[3])?));
        assert_eq!(queue.taken.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn reads_are_as_long_as_asked_for() -> Result {
        let many = 3 * BATCH + 5;
        let queue = CqCore::new(many, None, None)?;
        for n in 0..many {
            complete(&queue, n)?;
        }
        assert!(queue.reserve().is_none());
        let some = read(&queue, 2 * BATCH + 1).map_err(|_| EINVAL)?;
        assert!(some.len() == 2 * BATCH + 1 && some.iter().copied().eq(0..some.len()));
        let others = read(&queue, usize::MAX).map_err(|_| EINVAL)?;
        assert!(others.iter().copied().eq(some.len()..many));
        assert_eq!(queue.taken.load(Relaxed), 0);
        // A batch that is full isn't the end, nor is it followed by anything.
        for n in 0..BATCH {
            complete(&queue, n)?;
        }
        assert!(read(&queue, many).is_ok_and(|all| all.len() == BATCH));
        Ok(())
    }

    #[test]
    fn any_context_will_do() -> Result {
        let queue = CqCore::new(2, None, None)?;
        let outer = KBox::pin_init(new_irq_lock!((), c"kfabric_cq_kunit"), GFP_KERNEL)?;
        let unused = queue.reserve().ok_or(EINVAL)?;
        let used = queue.reserve().ok_or(EINVAL)?;
        outer.with(|_| {
            drop(unused);
            used.complete(done(7));
            queue.signal();
            drop(queue.reserve());
        });
        assert_eq!(read(&queue, 1), Ok(vec(&[7])?));
        Ok(())
    }

    #[test]
    fn after_closing_nothing_is_reported() -> Result {
        let calls = Probe::new()?;
        let queue = calls.queue(2)?;
        let (first, second) = (queue.reserve(), queue.reserve());
        queue.close();
        first.ok_or(EINVAL)?.complete(done(1));
        second.ok_or(EINVAL)?.fail(failure(2));
        assert_eq!(read(&queue, 1), Err(CqRead::Empty));
        assert!(queue.read_failure().is_none());
        assert_eq!((calls.calls(), queue.taken.load(Relaxed)), (0, 0));
        calls.end();
        Ok(())
    }

    #[test]
    fn a_wait_ends_with_enough_or_in_time() -> Result {
        let queue = CqCore::new(4, None, None)?;
        let soon = Some(msecs_to_jiffies(2));
        assert_eq!(wait(&queue, 1, Some(0)), Err(CqRead::Empty));
        assert_eq!(wait(&queue, 1, soon), Err(CqRead::Empty));
        complete(&queue, 1)?;
        complete(&queue, 2)?;
        // Fewer than were wanted are better than none, when the time is over.
        assert_eq!(wait(&queue, 3, Some(0)), Ok(vec(&[1, 2])?));
        complete(&queue, 1)?;
        assert_eq!(wait(&queue, 2, soon), Ok(vec(&[1])?));
        complete(&queue, 1)?;
        assert_eq!(wait(&queue, 0, None), Ok(vec(&[1])?));
        // A failure is enough.
        complete(&queue, 1)?;
        fail(&queue, 2)?;
        assert_eq!(wait(&queue, 4, None), Ok(vec(&[1])?));
        assert_eq!(wait(&queue, 4, None), Err(CqRead::Failure));
        assert_eq!(queue.read_failure(), Some(failure(2)));
        // No more can be wanted than there can be.
        for n in 0..4 {
            complete(&queue, n)?;
        }
        assert_eq!(wait(&queue, usize::MAX, None), Ok(vec(&[0, 1, 2, 3])?));
        assert_eq!(queue.state.with(|state| state.waits.waiting), 0);
        Ok(())
    }

    #[test]
    fn a_signal_waits_for_a_waiter() -> Result {
        let queue = CqCore::new(4, None, None)?;
        queue.signal();
        queue.signal();
        // A read without a wait doesn't take the signal.
        complete(&queue, 1)?;
        assert_eq!(wait(&queue, 1, None), Ok(vec(&[1])?));
        assert_eq!(wait(&queue, 1, Some(0)), Err(CqRead::Empty));
        complete(&queue, 2)?;
        assert_eq!(wait(&queue, 2, None), Ok(vec(&[2])?));
        // It was one.
        assert_eq!(wait(&queue, 1, Some(1)), Err(CqRead::Empty));
        queue.signal();
        assert_eq!(wait(&queue, 1, None), Err(CqRead::Empty));
        Ok(())
    }

    #[test]
    fn waiters_are_woken_when_it_matters() -> Result {
        let mut ring = CqRing::new(4)?;
        let mut waits = Waits::NONE;
        let done = CqOutcome::Done(done(1));
        assert!(ring.push(done) && !waits.came(&ring));
        waits.wake_at(3);
        waits.wake_at(4);
        assert!(ring.push(done) && !waits.came(&ring));
        assert!(ring.push(done) && waits.came(&ring));
        // Once: who goes on waiting says so.
        assert!(ring.push(done) && !waits.came(&ring));
        assert!(!ring.push(done));
        let mut ring = CqRing::new(1)?;
        waits.wake_at(3);
        assert!(ring.push(CqOutcome::Failed(failure(1))) && waits.came(&ring));
        waits.wake_at(3);
        waits.waiting = 1;
        let mut seen = None;
        assert!(!waits.is_signalled(&mut seen));
        assert!(waits.signal() && waits.is_signalled(&mut seen));
        assert!(!waits.is_signalled(&mut None));
        Ok(())
    }

    #[test]
    fn nothing_gets_lost_between_threads() -> Result {
        const EACH: usize = 4000;
        const THREADS: usize = 3;
        let queue = CqCore::new(20, None, None)?;
        let workers = OwnedQueue::new(c"kfabric_kunit", 4)?;
        for thread in 0..THREADS {
            let queue = queue.clone();
            workers.try_spawn(GFP_KERNEL, move || {
                let mut n = 0;
                while n < EACH {
                    match queue.reserve() {
                        Some(place) if n % 7 == 6 => place.fail(failure(thread * EACH + n)),
                        Some(place) => place.complete(done(thread * EACH + n)),
                        None => {
                            pause();
                            continue;
                        }
                    }
                    n += 1;
                }
            })?;
        }
        let mut next = [0; THREADS];
        let mut all = 0;
        let (mut backwards, mut unlike) = (0, 0);
        while all < THREADS * EACH {
            let wanted = (THREADS * EACH - all).min(5);
            let mut come = |context: Context, failed: bool| {
                let (thread, n) = (number(context) / EACH, number(context) % EACH);
                all += 1;
                unlike += usize::from(failed != (n % 7 == 6));
                match next.get_mut(thread) {
                    Some(next) if *next == n => *next += 1,
                    _ => backwards += 1,
                }
            };
            let long = Some(msecs_to_jiffies(60_000));
            match queue.wait_and_read(9, wanted, long, |done| come(done.context, false)) {
                CqRead::Done(_) => (),
                CqRead::Failure => {
                    let failure = queue.read_failure().ok_or(EINVAL)?;
                    come(failure.done.context, true);
                }
                _ => break,
            }
        }
        workers.flush();
        assert_eq!((all, backwards, unlike), (THREADS * EACH, 0, 0));
        assert_eq!(next, [EACH; THREADS]);
        assert_eq!(queue.taken.load(Relaxed), 0);
        Ok(())
    }
}
