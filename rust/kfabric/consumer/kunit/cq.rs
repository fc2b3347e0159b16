// SPDX-License-Identifier: GPL-2.0

//! Unit tests of completion queues, through Rust and C.

#[kernel::macros::kunit_tests(kfabric_consumer_cq)]
mod tests {
    use super::super::*;
    use crate::{
        object::cq::CqObject,
        provider::cq::{
            self,
            Context, //
        }, //
    };
    use core::ptr::without_provenance_mut as addr;
    use kfi_bindings::{
        kfi_cq_data_entry,
        kfi_cq_entry,
        kfi_cq_err_entry,
        kfi_cq_msg_entry,
        kfi_cq_tagged_entry,
        KFI_REMOTE_CQ_DATA, //
    };

    fn options(size: usize) -> CompletionQueueOptions {
        CompletionQueueOptions::default().size(size).waits()
    }

    /// Returns the core's object of a queue.
    fn core_side(queue: &CompletionQueue) -> Result<&CqObject> {
        // SAFETY: The queue is open, because it is borrowed.
        Ok(unsafe { CqObject::from_fid(queue.as_raw().cast()) }?)
    }

    /// Returns a successful completion with this number.
    fn done(number: usize) -> cq::CqEntry {
        cq::CqEntry {
            context: Context::new(addr(number)),
            flags: 0x1_0000_0000 | u64::from(KFI_REMOTE_CQ_DATA),
            len: number + 1,
            buf: Context::new(addr(number + 2)),
            data: 0x3333_4444_5555_6666,
        }
    }

    /// Returns a failure with this number.
    fn failure(number: usize) -> cq::CqErrEntry {
        cq::CqErrEntry {
            done: done(number),
            olen: number + 3,
            errno: Errno::EIO,
            prov_errno: -7,
        }
    }

    /// Checks a completion that Rust read.
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
        assert_eq!(core_side(&queue)?.queue.delivery().cpu, Some(3));
        assert_eq!(completions.read(&mut room)?, Completed::Nothing);
        assert_eq!(queue.wait(&mut room, 1, Some(0))?, Completed::Nothing);
        place(&queue)?.complete(done(usize::MAX - 9));
        place(&queue)?.complete(done(20));
        place(&queue)?.fail(failure(30));
        place(&queue)?.complete(cq::CqEntry {
            flags: 0,
            ..done(40)
        });
        assert!(core_side(&queue)?.queue.reserve().is_none());
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
        let (_provider, domain) = Fake::open()?;
        let queue = CompletionQueue::open(&domain, CompletionQueueOptions::default())?;
        let mut room = [Completion::ROOM; 1];
        assert_eq!(queue.wait(&mut room, 1, None), Err(Errno::ENOSYS));
        assert_eq!(queue.signal(), Err(Errno::ENOSYS));
        let core = core_side(&queue)?.queue.clone();
        assert_eq!((core.size(), core.delivery().cpu), (1024, None));
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
        let bound = core_side(&queue)?.queue.clone();
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
        /// The result of closing the queue in the handler.
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

    /// Opens a queue in this format, and completes two in it: contexts 1 and 2.
    fn raw(domain: &Arc<Domain>, format: u32) -> Result<*mut kfid_cq> {
        let mut attr = kfi_bindings::kfi_cq_attr {
            format,
            ..pin_init::zeroed()
        };
        let mut cq = ptr::null_mut();
        let domain = domain.as_raw();
        // SAFETY: The domain is open; the others are locals.
        let opened =
            unsafe { crate::object::cq::open(domain, &mut attr, &mut cq, None, ptr::null_mut()) };
        assert_eq!(opened, 0);
        // SAFETY: It was just opened, and is used until the test closes it.
        let core = unsafe { CqObject::from_fid(cq.cast()) }?;
        for number in 1..=2 {
            core.queue.reserve().ok_or(EINVAL)?.complete(done(number));
        }
        Ok(cq)
    }

    /// Reads both in a format, with this many entries, and closes the queue. Returns the
    /// addresses that they came from.
    fn read_both<E>(cq: *mut kfid_cq, room: &mut [E; 3]) -> [u64; 3] {
        let mut from = [7; 3];
        // SAFETY: The queue is open, with a full table, and of the room's format.
        unsafe {
            let read = (*(*cq).ops).readfrom;
            let read = read.map(|read| read(cq, room.as_mut_ptr().cast(), 3, from.as_mut_ptr()));
            assert_eq!(read, Some(2));
            let close = (*(*cq).fid.ops).close;
            assert_eq!(close.map(|close| close(cq.cast())), Some(0));
        }
        from
    }

    /// Returns the fields that all entries but the shortest have.
    macro_rules! head {
        ($entry:ident) => {
            ($entry.op_context.addr(), $entry.flags, $entry.len)
        };
    }

    #[test]
    fn each_format_is_what_c_knows() -> Result {
        let (_provider, domain) = Fake::open()?;
        let (first, second) = (done(1), done(2));
        let far = addr(0x5a5a);

        let mut room = [const {
            kfi_cq_entry {
                op_context: addr(0x5a5a),
            }
        }; 3];
        let from = read_both(raw(&domain, 1)?, &mut room);
        assert_eq!(from, [u64::MAX, u64::MAX, 7]);
        assert!(room
            .iter()
            .map(|e| e.op_context)
            .eq([addr(1), addr(2), far]));

        let mut room: [kfi_cq_msg_entry; 3] = pin_init::zeroed();
        read_both(raw(&domain, 2)?, &mut room);
        let [one, two, none] = room;
        assert_eq!(head!(one), (1, first.flags, 2));
        assert_eq!(head!(two), (2, second.flags, 3));
        assert_eq!(head!(none), (0, 0, 0));

        // Left to the core, it is the third.
        for format in [0, 3] {
            let mut room: [kfi_cq_data_entry; 3] = pin_init::zeroed();
            read_both(raw(&domain, format)?, &mut room);
            let [one, two, none] = room;
            assert_eq!(head!(one), (1, first.flags, 2));
            assert_eq!((one.buf.addr(), one.data), (3, first.data));
            assert_eq!(
                (two.op_context.addr(), two.buf.addr(), two.data),
                (2, 4, second.data)
            );
            assert_eq!((none.op_context.addr(), none.data), (0, 0));
        }

        let mut room: [kfi_cq_tagged_entry; 3] = pin_init::zeroed();
        for entry in &mut room {
            entry.tag = 9;
        }
        read_both(raw(&domain, 4)?, &mut room);
        let [one, two, none] = room;
        assert_eq!(head!(one), (1, first.flags, 2));
        assert_eq!((one.buf.addr(), one.data, one.tag), (3, first.data, 0));
        assert_eq!(
            (two.op_context.addr(), two.data, two.tag),
            (2, second.data, 0)
        );
        assert_eq!((none.op_context.addr(), none.tag), (0, 9));
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn a_failure_is_told_to_c() -> Result {
        let _provider = Fake::register()?;
        let queue = CompletionQueue::open(&domain()?, options(2))?;
        place(&queue)?.fail(failure(1));
        place(&queue)?.fail(failure(2));
        let cq = queue.as_raw();
        let mut entry: kfi_cq_err_entry = pin_init::zeroed();
        entry.err_data = addr(0x5a5a);
        entry.tag = 9;
        let mut readerr = || {
            // SAFETY: The queue is open, with a full table.
            let read = unsafe { (*(*cq).ops).readerr.map(|read| read(cq, &mut entry, 0)) };
            let told = (
                entry.op_context.addr(),
                entry.flags,
                entry.len,
                entry.buf.addr(),
            );
            assert!(read != Some(1) || told.1 == done(1).flags);
            let other = (entry.data, entry.tag, entry.olen);
            let errors = (entry.err, entry.prov_errno);
            let data = (entry.err_data.addr(), entry.err_data_size);
            // Room for the next one.
            (entry.err_data, entry.err_data_size) = (addr(0x7000), 16);
            (read, (told.0, told.2, told.3), other, errors, data)
        };
        let data = done(1).data;
        let none = (0, 0);
        let first = (Some(1), (1, 2, 3), (data, 0, 4), (5, -7), none);
        assert_eq!(readerr(), first);
        let second = (Some(1), (2, 3, 4), (data, 0, 5), (5, -7), (0x7000, 0));
        assert_eq!(readerr(), second);
        assert_eq!(readerr().0, Some(-11));
        Ok(CompletionQueue::close(queue)?)
    }
}
