// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the handlers of completion queues.

#[kernel::macros::kunit_tests(kfabric_cq_handler)]
mod tests {
    use crate::{
        provider::cq::{
            kunit::common::*,
            *, //
        },
        support::workqueue::OwnedQueue, //
    };

    #[test]
    fn called_once_until_found_empty() -> Result {
        let probe = Probe::new()?;
        let queue = probe.queue(9)?;
        assert_eq!(probe.calls(), 0);
        complete(&queue, 1)?;
        assert_eq!(probe.calls(), 1);
        fail(&queue, 2)?;
        assert_eq!(read(&queue, 9), Ok(vec(&[1])?));
        assert_eq!(read(&queue, 9), Err(CqRead::Failure));
        complete(&queue, 3)?;
        assert_eq!(queue.read_failure(), Some(failure(2)));
        assert_eq!(read(&queue, 9), Ok(vec(&[3])?));
        // It is empty, but nobody was told so.
        assert!(queue.read_failure().is_none());
        complete(&queue, 4)?;
        assert_eq!(read(&queue, 9), Ok(vec(&[4])?));
        assert_eq!(probe.calls(), 1);

        assert_eq!(read(&queue, 9), Err(CqRead::Empty));
        fail(&queue, 5)?;
        assert_eq!(probe.calls(), 2);
        assert_eq!(queue.read_failure(), Some(failure(5)));
        assert_eq!(wait(&queue, 1, Some(0)), Err(CqRead::Empty));
        complete(&queue, 6)?;
        assert_eq!(probe.calls(), 3);
        // Nor does a place say anything that has nothing to say.
        assert_eq!(read(&queue, 9), Ok(vec(&[6])?));
        assert_eq!(read(&queue, 9), Err(CqRead::Empty));
        drop(queue.reserve());
        assert_eq!(probe.calls(), 3);
        queue.close();
        probe.end();
        Ok(())
    }

    #[test]
    fn what_it_completes_itself_calls_it_afterwards() -> Result {
        let probe = Probe::new()?;
        let queue = probe.queue_with(9, |queue, call| {
            assert_eq!(read(queue, 9), vec(&[call]).map_err(|_| CqRead::Empty));
            assert_eq!(read(queue, 9), Err(CqRead::Empty));
            if call < 100 {
                assert!(complete(queue, call + 1).is_ok());
            }
            assert!(queue.in_handler());
        })?;
        complete(&queue, 1)?;
        assert_eq!((probe.calls(), probe.most_inside()), (100, 1));
        assert!(!queue.in_handler());
        assert_eq!(read(&queue, 9), Err(CqRead::Empty));
        queue.close();
        probe.end();
        Ok(())
    }

    #[test]
    fn what_was_read_meanwhile_calls_nobody() -> Result {
        let probe = Probe::new()?;
        let queue = probe.queue_with(9, |queue, call| {
            assert_eq!(read(queue, 9), vec(&[call]).map_err(|_| CqRead::Empty));
            assert_eq!(read(queue, 9), Err(CqRead::Empty));
            assert!(complete(queue, 9).is_ok());
            assert_eq!(read(queue, 9), vec(&[9]).map_err(|_| CqRead::Empty));
            assert_eq!(read(queue, 9), Err(CqRead::Empty));
        })?;
        complete(&queue, 1)?;
        assert_eq!(probe.calls(), 1);
        complete(&queue, 2)?;
        assert_eq!(probe.calls(), 2);
        queue.close();
        probe.end();
        Ok(())
    }

    /// Sleeps until it is so, for a minute at most.
    fn comes(it: impl Fn() -> bool) -> bool {
        for _ in 0..60_000 {
            if it() {
                return true;
            }
            pause();
        }
        false
    }

    #[test]
    fn closing_waits_for_it() -> Result {
        const BEGUN: usize = 1;
        const GO: usize = 2;
        let (probe, stage) = (Probe::new()?, Arc::new(Atomic::new(0), GFP_KERNEL)?);
        let (told, gone) = (stage.clone(), Arc::new(Atomic::new(false), GFP_KERNEL)?);
        // Called by a thread, which may sleep.
        let queue = probe.queue_with(9, move |queue, _| {
            let read = (read(queue, 9).is_ok(), read(queue, 9));
            if queue.in_handler() && read == (true, Err(CqRead::Empty)) {
                told.store(BEGUN, Release);
                comes(|| told.load(Acquire) == GO);
            }
        })?;
        let workers = OwnedQueue::new(c"kfabric_kunit", 4)?;
        let completing = queue.clone();
        workers.try_spawn(GFP_KERNEL, move || _ = complete(&completing, 1))?;
        let begun = comes(|| stage.load(Acquire) == BEGUN);
        // Somebody else is not in the handler, and what he completes is left to who calls it.
        let (here, completed) = (queue.in_handler(), complete(&queue, 2));
        let (closing, closed) = (queue.clone(), gone.clone());
        workers.try_spawn(GFP_KERNEL, move || {
            closing.close();
            closed.store(true, Release);
        })?;
        for _ in 0..50 {
            pause();
        }
        let waits = !gone.load(Acquire);
        stage.store(GO, Release);
        workers.flush();
        assert!(begun && !here && completed.is_ok() && waits);
        assert!(gone.load(Acquire));
        // That it was to be called again is over, too.
        queue.reserve().ok_or(EINVAL)?.complete(done(3));
        assert_eq!((probe.calls(), probe.most_inside()), (1, 1));
        probe.end();
        Ok(())
    }

    #[test]
    fn one_call_at_a_time_and_none_forgotten() -> Result {
        const EACH: usize = 3000;
        const THREADS: usize = 3;
        let (probe, all) = (Probe::new()?, Arc::new(Atomic::new(0), GFP_KERNEL)?);
        let sum = all.clone();
        let queue = probe.queue_with(50, move |queue, _| loop {
            match queue.read(7, |_| _ = sum.fetch_add(1, Relaxed)) {
                CqRead::Done(_) => (),
                CqRead::Failure => {
                    sum.fetch_add(queue.read_failure().iter().count(), Relaxed);
                }
                _ => break,
            }
        })?;
        let workers = OwnedQueue::new(c"kfabric_kunit", 4)?;
        for _ in 0..THREADS {
            let queue = queue.clone();
            workers.try_spawn(GFP_KERNEL, move || {
                let mut n = 0;
                while n < EACH {
                    match queue.reserve() {
                        Some(place) if n % 5 == 0 => place.fail(failure(n)),
                        Some(place) => place.complete(done(n)),
                        None => {
                            pause();
                            continue;
                        }
                    }
                    n += 1;
                }
            })?;
        }
        workers.flush();
        // Nobody else reads: a call that was forgotten would leave some.
        assert_eq!(all.load(Relaxed), THREADS * EACH);
        assert_eq!(probe.most_inside(), 1);
        queue.close();
        probe.end();
        Ok(())
    }
}
