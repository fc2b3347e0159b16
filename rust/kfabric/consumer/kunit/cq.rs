// SPDX-License-Identifier: GPL-2.0

//! Unit tests of completion queues, through the API for consumers and as C has them; what completes
//! is completed by the tests.

#[kernel::macros::kunit_tests(kfabric_consumer_cq)]
mod tests {
    use crate::{
        consumer::{
            kunit::{
                completed::{
                    core_side,
                    done,
                    failure,
                    place, //
                },
                fake::{
                    domain,
                    Fake, //
                }, //
            },
            *, //
        },
        provider::cq, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        }, //
    };

    fn options(size: usize) -> CompletionQueueOptions {
        CompletionQueueOptions::default().size(size).waits()
    }

    /// As the consumer reads them.
    fn is(read: &Completion, number: usize) -> bool {
        let done = done(number);
        (read.context, read.flags, read.len) == (number, done.flags, number + 1)
            && (read.buf, read.data()) == (number + 2, Some(done.data))
    }

    #[test]
    fn completions_come_out_as_they_went_in() -> Result {
        let _provider = Fake::register()?;
        let queue = CompletionQueue::open(&domain()?, options(4).cpu(3))?;
        let mut room = [Completion::ROOM; 4];
        let completions = queue.completions();
        assert_eq!(core_side(&queue)?.queue().cpu(), Some(3));
        assert_eq!(completions.read(&mut room)?, Completed::Nothing);
        assert_eq!(queue.wait(&mut room, 1, Some(0))?, Completed::Nothing);
        place(&queue)?.complete(done(usize::MAX - 9));
        place(&queue)?.complete(done(20));
        place(&queue)?.fail(failure(30));
        place(&queue)?.complete(cq::Completion {
            flags: 0,
            ..done(40)
        });
        assert!(core_side(&queue)?.queue().reserve().is_none());
        assert_eq!(completions.read(&mut []), Err(Errno::EINVAL));
        match queue.wait(&mut room, 4, None)? {
            Completed::Done([first, second]) => {
                assert!(is(first, usize::MAX - 9) && is(second, 20));
            }
            _ => return Err(EIO),
        }
        match completions.read(&mut room)? {
            Completed::Failed(failed) => {
                assert!(is(&failed.done, 30));
                assert_eq!((failed.olen, failed.errno), (33, Errno::EIO));
                assert_eq!(failed.prov_errno, -7);
            }
            _ => return Err(EIO),
        }
        match completions.read(&mut room)? {
            Completed::Done([last]) => assert_eq!((last.context, last.data()), (40, None)),
            _ => return Err(EIO),
        }
        assert_eq!(completions.read(&mut room)?, Completed::Nothing);
        queue.signal()?;
        assert_eq!(queue.wait(&mut room, 1, None)?, Completed::Nothing);
        Ok(CompletionQueue::close(queue)?)
    }

    #[test]
    fn what_was_not_asked_for_is_not_there() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let queue = CompletionQueue::open(&domain, CompletionQueueOptions::default())?;
        let mut room = [Completion::ROOM; 1];
        assert_eq!(queue.wait(&mut room, 1, None), Err(Errno::ENOSYS));
        assert_eq!(queue.signal(), Err(Errno::ENOSYS));
        let core = core_side(&queue)?.queue().clone();
        assert_eq!((core.size(), core.cpu()), (1024, None));
        let error = CompletionQueue::open(&domain, options(usize::MAX)).err();
        assert_eq!(error, Some(Errno::EINVAL));
        // The domain stays open with it.
        let error = Domain::close(domain).err().ok_or(EINVAL)?;
        assert!(error.errno() == Errno::EBUSY);
        let late = core.reserve().ok_or(EINVAL)?;
        CompletionQueue::close(queue)?;
        late.complete(done(1));
        Ok(())
    }

    #[test]
    fn a_bound_queue_can_be_closed() -> Result {
        let _provider = Fake::register()?;
        let queue = CompletionQueue::open(&domain()?, options(3))?;
        let bound = core_side(&queue)?.queue().clone();
        bound.reserve().ok_or(EINVAL)?.complete(done(1));
        bound.reserve().ok_or(EINVAL)?.fail(failure(2));
        let place = bound.reserve().ok_or(EINVAL)?;
        assert_eq!(bound.left(), 0);
        CompletionQueue::close(queue)?;
        // Unread completions and failures give their places back, and so do those that come later.
        assert_eq!(bound.left(), 2);
        place.complete(done(3));
        assert_eq!(bound.left(), 3);
        bound.reserve().ok_or(EINVAL)?.fail(failure(4));
        assert_eq!(bound.left(), 3);
        Ok(())
    }

    /// Adds up the contexts of what it reads; counts how often it was dropped.
    struct Sum {
        sum: Atomic<usize>,
        failed: Atomic<usize>,
        dropped: Atomic<usize>,
        /// What closing the queue gave.
        closed: Atomic<i32>,
    }

    struct Adds(Arc<Sum>, usize);

    impl CompletionHandler for Adds {
        fn completions(&self, completions: Completions<'_>) {
            let mut room = [Completion::ROOM; 2];
            // SAFETY: The queue is open; this is refused.
            let closed = unsafe {
                let cq = completions.0.as_ptr();
                (*(*cq).fid.ops).close.map(|close| close(cq.cast()))
            };
            self.0.closed.store(closed.unwrap_or(0), Relaxed);
            loop {
                match completions.read(&mut room) {
                    Ok(Completed::Done(done)) => {
                        for done in done {
                            self.0.sum.fetch_add(done.context * self.1, Relaxed);
                        }
                    }
                    Ok(Completed::Failed(_)) => _ = self.0.failed.fetch_add(1, Relaxed),
                    _ => break,
                }
            }
        }
    }

    impl Drop for Adds {
        fn drop(&mut self) {
            self.0.dropped.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn handlers_are_called_and_dropped() -> Result {
        let _provider = Fake::register()?;
        let sum = Sum {
            sum: Atomic::new(0),
            failed: Atomic::new(0),
            dropped: Atomic::new(0),
            closed: Atomic::new(0),
        };
        let sum = Arc::new(sum, GFP_KERNEL)?;
        let handler = KBox::new(Adds(sum.clone(), 10), GFP_KERNEL)?;
        let queue = CompletionQueue::open(&domain()?, options(8).handler(handler))?;
        let places = [
            place(&queue)?,
            place(&queue)?,
            place(&queue)?,
            place(&queue)?,
        ];
        for (number, place) in places.into_iter().enumerate() {
            match number {
                3 => place.fail(failure(number)),
                _ => place.complete(done(number + 1)),
            }
        }
        assert_eq!((sum.sum.load(Relaxed), sum.failed.load(Relaxed)), (60, 1));
        // By its own handler it can't be closed.
        let badstate = Errno::EOPBADSTATE.to_c();
        assert_eq!(
            (sum.closed.load(Relaxed), sum.dropped.load(Relaxed)),
            (badstate, 0)
        );
        CompletionQueue::close(queue)?;
        assert_eq!((sum.sum.load(Relaxed), sum.dropped.load(Relaxed)), (60, 1));
        Ok(())
    }
}
