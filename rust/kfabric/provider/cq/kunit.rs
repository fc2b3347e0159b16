// SPDX-License-Identifier: GPL-2.0

//! Unit tests of completion queues: places, order, reading, waiting and the calls of handlers.

mod sources;

use crate::{
    provider::cq::{
        wakeups::Waits,
        *, //
    },
    support::{
        vec::PushReserved,
        workqueue::OwnedQueue, //
    }, //
};
use core::ptr::without_provenance_mut;
use kernel::{
    new_spinlock,
    sync::SpinLock,
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta,
        Jiffies, //
    }, //
};

/// Returns the completion of the operation with this number.
fn done(number: usize) -> CqEntry {
    CqEntry {
        context: Context::new(without_provenance_mut(number)),
        flags: 2,
        len: 3,
        buf: Context::NULL,
        data: 4,
    }
}

/// Returns the failure of the operation with this number.
fn failure(number: usize) -> CqErrEntry {
    CqErrEntry {
        done: done(number),
        olen: 5,
        errno: Errno::EIO,
        prov_errno: 6,
    }
}

fn number(context: Context) -> usize {
    context.as_ptr().addr()
}

fn complete(queue: &Arc<CqCore>, number: usize) -> Result {
    queue.reserve().ok_or(EAGAIN)?.complete(done(number));
    Ok(())
}

fn fail(queue: &Arc<CqCore>, number: usize) -> Result {
    queue.reserve().ok_or(EAGAIN)?.fail(failure(number));
    Ok(())
}

fn vec(numbers: &[usize]) -> Result<KVec<usize>> {
    let mut all = KVec::new();
    all.extend_from_slice(numbers, GFP_KERNEL)?;
    Ok(all)
}

/// Returns the numbers of the completions that `read` passes on, or its result if there are none.
fn numbers(
    read: impl FnOnce(&mut dyn FnMut(&CqEntry)) -> Result<usize, Errno>,
) -> Result<KVec<usize>, Errno> {
    const MANY: usize = 1000;
    let mut all = KVec::with_capacity(MANY, GFP_KERNEL).map_err(|_| Errno::EAGAIN)?;
    // Under the lock, where nothing can be allocated.
    let read = read(&mut |done| {
        all.push_reserved(number(done.context));
    });
    match read? {
        count if count == all.len() => Ok(all),
        _ => Err(Errno::EIO),
    }
}

/// Reads at most `most` completions.
fn read(queue: &CqCore, most: usize) -> Result<KVec<usize>, Errno> {
    numbers(|out| queue.read(most, out))
}

/// Waits for at least `threshold` completions.
fn wait(queue: &CqCore, at_least: usize, left: Option<Jiffies>) -> Result<KVec<usize>, Errno> {
    numbers(|out| queue.wait_and_read(9, at_least, left, out))
}

/// Gives others a turn.
fn pause() {
    fsleep(Delta::from_millis(1));
}

/// Counts what a handler does, which can be told to do more.
#[pin_data]
struct Probe {
    calls: Atomic<usize>,
    inside: Atomic<usize>,
    most_inside: Atomic<usize>,
    #[pin]
    queue: SpinLock<Option<Arc<CqCore>>>,
}

/// The action of a handler on its queue; it gets the number of the call.
type Script = dyn Fn(&Arc<CqCore>, usize) + Send + Sync;

struct Calls {
    probe: Arc<Probe>,
    script: KBox<Script>,
}

impl Probe {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                calls: Atomic::new(0),
                inside: Atomic::new(0),
                most_inside: Atomic::new(0),
                queue <- new_spinlock!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the number of calls of the handler.
    fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Returns the maximum number of simultaneous calls.
    fn most_inside(&self) -> usize {
        self.most_inside.load(Relaxed)
    }

    /// Makes a queue with a handler that does nothing else.
    fn queue(self: &Arc<Self>, size: usize) -> Result<Arc<CqCore>> {
        self.queue_with(size, |_, _| ())
    }

    /// Makes a queue with a handler that does this, too.
    fn queue_with(
        self: &Arc<Self>,
        size: usize,
        script: impl Fn(&Arc<CqCore>, usize) + Send + Sync + 'static,
    ) -> Result<Arc<CqCore>> {
        let calls = Calls {
            probe: self.clone(),
            script: KBox::new(script, GFP_KERNEL)?,
        };
        let handler: KBox<Notify> = KBox::new(move || calls.notify(), GFP_KERNEL)?;
        let queue = CqCore::new(size, Delivery::default(), Some(handler))?;
        *self.queue.lock() = Some(queue.clone());
        Ok(queue)
    }

    /// Lets the queue go, to which the handler has a reference.
    fn end(&self) {
        let queue = self.queue.lock().take();
        drop(queue);
    }
}

impl Calls {
    fn notify(&self) {
        let probe = &self.probe;
        let call = probe.calls.fetch_add(1, Relaxed) + 1;
        let inside = probe.inside.fetch_add(1, Relaxed) + 1;
        if inside > probe.most_inside.load(Relaxed) {
            probe.most_inside.store(inside, Relaxed);
        }
        let queue = probe.queue.lock().clone();
        if let Some(queue) = queue {
            (self.script)(&queue, call);
        }
        probe.inside.fetch_sub(1, Relaxed);
    }
}

#[kernel::macros::kunit_tests(kfabric_cq)]
mod tests {
    use super::*;

    #[test]
    fn in_order_and_round_and_round() -> Result {
        let queue = CqCore::new(3, Delivery::default(), None)?;
        for start in 0..10 {
            complete(&queue, start)?;
            fail(&queue, start + 1)?;
            complete(&queue, start + 2)?;
            // A failure is where it came.
            assert!(queue.read_failure().is_none());
            assert_eq!(read(&queue, 9), Ok(vec(&[start])?));
            assert_eq!(read(&queue, 9), Err(Errno::EAVAIL));
            assert_eq!(queue.read_failure(), Some(failure(start + 1)));
            assert!(queue.read_failure().is_none());
            assert_eq!(read(&queue, 9), Ok(vec(&[start + 2])?));
            assert_eq!(read(&queue, 9), Err(Errno::EAGAIN));
        }
        Ok(())
    }

    #[test]
    fn places_are_taken_until_read() -> Result {
        let delivery = Delivery {
            cpu: Some(5),
            polled: false,
        };
        let queue = CqCore::new(3, delivery, None)?;
        assert_eq!((queue.size(), queue.delivery()), (3, delivery));
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
        let queue = CqCore::new(many, Delivery::default(), None)?;
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

    /// Checks that a handler whose read ends at a failure is called again, wherever the failure is.
    #[test]
    fn handler_is_told_of_failure_behind_completions() -> Result {
        for before in [1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH] {
            let calls = Probe::new()?;
            let queue = calls.queue_with(before + 1, move |queue, call| {
                if call == 1 {
                    // What comes during the call is not another call's.
                    assert!((0..before - 1).all(|n| complete(queue, n).is_ok()));
                    assert!(fail(queue, before).is_ok());
                    assert_eq!(queue.read(usize::MAX, |_| ()), Ok(before));
                } else {
                    assert_eq!(queue.read(usize::MAX, |_| ()), Err(Errno::EAVAIL));
                    assert_eq!(queue.read_failure(), Some(failure(before)));
                }
            })?;
            complete(&queue, before)?;
            assert_eq!(calls.calls(), 2);
            queue.close();
            calls.end();
        }
        Ok(())
    }

    #[test]
    fn any_context_will_do() -> Result {
        let queue = CqCore::new(2, Delivery::default(), None)?;
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
        assert_eq!(read(&queue, 1), Err(Errno::EAGAIN));
        assert!(queue.read_failure().is_none());
        assert_eq!((calls.calls(), queue.taken.load(Relaxed)), (0, 0));
        calls.end();
        Ok(())
    }

    #[test]
    fn a_wait_ends_with_enough_or_in_time() -> Result {
        let queue = CqCore::new(4, Delivery::default(), None)?;
        let soon = Some(msecs_to_jiffies(2));
        assert_eq!(wait(&queue, 1, Some(0)), Err(Errno::EAGAIN));
        assert_eq!(wait(&queue, 1, soon), Err(Errno::EAGAIN));
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
        assert_eq!(wait(&queue, 4, None), Err(Errno::EAVAIL));
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
        let queue = CqCore::new(4, Delivery::default(), None)?;
        queue.signal();
        queue.signal();
        // A read without a wait doesn't take the signal.
        complete(&queue, 1)?;
        assert_eq!(wait(&queue, 1, None), Ok(vec(&[1])?));
        assert_eq!(wait(&queue, 1, Some(0)), Err(Errno::EAGAIN));
        complete(&queue, 2)?;
        assert_eq!(wait(&queue, 2, None), Ok(vec(&[2])?));
        // It was one.
        assert_eq!(wait(&queue, 1, Some(1)), Err(Errno::EAGAIN));
        queue.signal();
        assert_eq!(wait(&queue, 1, None), Err(Errno::EAGAIN));
        Ok(())
    }

    #[test]
    fn waiters_are_woken_when_it_matters() -> Result {
        let mut ring = CqRing::new(4)?;
        let mut waits = Waits::NONE;
        let done = Ok(done(1));
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
        assert!(ring.push(Err(failure(1))) && waits.came(&ring));
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
        let queue = CqCore::new(20, Delivery::default(), None)?;
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
                Ok(_) => (),
                Err(Errno::EAVAIL) => {
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

#[kernel::macros::kunit_tests(kfabric_cq_handler)]
mod tests_of_handler {
    use super::*;

    #[test]
    fn called_once_until_found_empty() -> Result {
        let probe = Probe::new()?;
        let queue = probe.queue(9)?;
        assert_eq!(probe.calls(), 0);
        complete(&queue, 1)?;
        assert_eq!(probe.calls(), 1);
        fail(&queue, 2)?;
        assert_eq!(read(&queue, 9), Ok(vec(&[1])?));
        assert_eq!(read(&queue, 9), Err(Errno::EAVAIL));
        complete(&queue, 3)?;
        assert_eq!(queue.read_failure(), Some(failure(2)));
        // It is empty, but the reader had no room to find that out.
        assert_eq!(read(&queue, 1), Ok(vec(&[3])?));
        assert!(queue.read_failure().is_none());
        complete(&queue, 4)?;
        assert_eq!(probe.calls(), 1);

        // A reader that gets less than it has room for has found it empty.
        assert_eq!(read(&queue, 9), Ok(vec(&[4])?));
        fail(&queue, 5)?;
        assert_eq!(probe.calls(), 2);
        assert_eq!(queue.read_failure(), Some(failure(5)));
        assert_eq!(wait(&queue, 1, Some(0)), Err(Errno::EAGAIN));
        complete(&queue, 6)?;
        assert_eq!(probe.calls(), 3);
        // Nor does a place say anything that has nothing to say.
        assert_eq!(read(&queue, 9), Ok(vec(&[6])?));
        assert_eq!(read(&queue, 9), Err(Errno::EAGAIN));
        drop(queue.reserve());
        assert_eq!(probe.calls(), 3);
        queue.close();
        probe.end();
        Ok(())
    }

    #[test]
    fn failure_behind_short_read_calls_it_again() -> Result {
        let probe = Probe::new()?;
        let queue = probe.queue_with(9, |queue, call| match call {
            1 => {
                assert!(fail(queue, 2).is_ok());
                assert_eq!(read(queue, 9), vec(&[1]).map_err(|_| Errno::EAGAIN));
            }
            _ => assert_eq!(queue.read_failure(), Some(failure(2))),
        })?;
        complete(&queue, 1)?;
        assert_eq!(probe.calls(), 2);
        queue.close();
        probe.end();
        Ok(())
    }

    #[test]
    fn what_it_completes_itself_calls_it_afterwards() -> Result {
        let probe = Probe::new()?;
        let queue = probe.queue_with(9, |queue, call| {
            assert_eq!(read(queue, 9), vec(&[call]).map_err(|_| Errno::EAGAIN));
            assert_eq!(read(queue, 9), Err(Errno::EAGAIN));
            if call < 100 {
                assert!(complete(queue, call + 1).is_ok());
            }
            assert!(queue.in_handler());
        })?;
        complete(&queue, 1)?;
        assert_eq!((probe.calls(), probe.most_inside()), (100, 1));
        assert!(!queue.in_handler());
        assert_eq!(read(&queue, 9), Err(Errno::EAGAIN));
        queue.close();
        probe.end();
        Ok(())
    }

    #[test]
    fn what_was_read_meanwhile_calls_nobody() -> Result {
        let probe = Probe::new()?;
        let queue = probe.queue_with(9, |queue, call| {
            assert_eq!(read(queue, 9), vec(&[call]).map_err(|_| Errno::EAGAIN));
            assert_eq!(read(queue, 9), Err(Errno::EAGAIN));
            assert!(complete(queue, 9).is_ok());
            assert_eq!(read(queue, 9), vec(&[9]).map_err(|_| Errno::EAGAIN));
            assert_eq!(read(queue, 9), Err(Errno::EAGAIN));
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
            if queue.in_handler() && read == (true, Err(Errno::EAGAIN)) {
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
                Ok(_) => (),
                Err(Errno::EAVAIL) => {
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
