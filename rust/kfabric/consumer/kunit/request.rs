// SPDX-License-Identifier: GPL-2.0

//! Unit tests of requests, and of the context of a consumer's code: no allocation waits for I/O there.

use super::*;
use crate::provider::cq::{
    self,
    Context,
    CqPlace, //
};
use kfi_bindings::kfi_ops_mr;

#[kernel::macros::kunit_tests(kfabric_consumer_request)]
mod tests {
    use super::*;

    /// A context that counts how often it was dropped.
    struct Drops(Arc<Atomic<i32>>);

    impl Drop for Drops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    type Queue = RequestQueue<KVec<u8>, Drops>;

    fn drops() -> Result<Arc<Atomic<i32>>> {
        Ok(Arc::new(Atomic::new(0), GFP_KERNEL)?)
    }

    fn request(drops: &Arc<Atomic<i32>>, len: usize) -> Result<Request<KVec<u8>, Drops>> {
        Ok(Request::new(bytes(0, len)?, Drops(drops.clone()))?)
    }

    fn place(queue: &Queue) -> Result<CqPlace> {
        super::place(queue.completion_queue())
    }

    fn done(context: *mut c_void, flags: u32) -> cq::CqEntry {
        cq::CqEntry {
            context: Context::new(context),
            flags: u64::from(flags),
            len: 7,
            buf: Context::new(ptr::null_mut()),
            data: 9,
        }
    }

    fn failure(context: *mut c_void) -> cq::CqErrEntry {
        cq::CqErrEntry {
            done: done(context, kfi_bindings::KFI_RECV),
            olen: 0,
            errno: Errno::ECANCELED,
            prov_errno: 0,
        }
    }

    #[test]
    fn parts_are_within_the_memory() -> Result {
        let drops = drops()?;
        let mut request = request(&drops, 10)?;
        let start = request.memory().as_ptr().addr();
        let at = |request: &Request<KVec<u8>, Drops>| {
            let run = request.run()?.ok_or(Errno::EIO)?;
            Ok((run.start.addr().get() - start, run.len, run.desc.addr()))
        };
        assert_eq!(at(&request), Ok((0, 10, 0)));
        request.set_part(10, 0)?;
        assert_eq!(at(&request), Ok((10, 0, 0)));
        request.set_part(3, 7)?;
        for (offset, len) in [(3, 8), (11, 0), (usize::MAX, 2), (0, usize::MAX)] {
            assert_eq!(request.set_part(offset, len), Err(Errno::EINVAL));
            assert_eq!(at(&request), Ok((3, 7, 0)));
        }
        request.memory_mut().truncate(9);
        assert_eq!(at(&request), Err(Errno::EINVAL));
        let (memory, context) = request.into_inner();
        assert_eq!((memory.len(), drops.load(Relaxed)), (9, 0));
        drop(context);
        assert_eq!(drops.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn requests_come_back_as_they_went() -> Result {
        let _provider = Fake::register()?;
        let queue = Queue::open(
            &domain()?,
            CompletionQueueOptions::default().size(4).waits(),
        )?;
        let drops = drops()?;
        let context = request(&drops, 10)?.into_context();
        place(&queue)?.complete(done(context, kfi_bindings::KFI_READ));
        match queue.wait(None)? {
            Some(Ended::Done(request, how)) => {
                assert_eq!((how.kind, how.len, how.data), (Kind::Read, 7, None));
                assert!(*request.memory() == bytes(0, 10)?);
                let data = kfi_bindings::KFI_RECV | kfi_bindings::KFI_REMOTE_CQ_DATA;
                place(&queue)?.complete(done(request.into_context(), data));
            }
            _ => return Err(EIO),
        }
        match queue.read()? {
            Some(Ended::Done(request, how)) => {
                assert_eq!((how.kind, how.data), (Kind::Recv, Some(9)));
                place(&queue)?.fail(failure(request.into_context()));
            }
            _ => return Err(EIO),
        }
        place(&queue)?.fail(failure(ptr::null_mut()));
        match queue.read()? {
            Some(Ended::Failed(request, how)) => {
                assert_eq!(how.errno, Errno::ECANCELED);
                assert_eq!(drops.load(Relaxed), 0);
                drop(request);
            }
            _ => return Err(EIO),
        }
        assert_eq!(drops.load(Relaxed), 1);
        assert!(matches!(queue.read()?, Some(Ended::InjectFailed(_))));
        assert!(queue.read()?.is_none());
        Ok(())
    }

    #[test]
    fn what_nobody_reads_goes_with_the_queue() -> Result {
        let _provider = Fake::register()?;
        let queue = Queue::open(&domain()?, CompletionQueueOptions::default().size(4))?;
        let drops = drops()?;
        let flags = kfi_bindings::KFI_SEND;
        place(&queue)?.complete(done(request(&drops, 10)?.into_context(), flags));
        place(&queue)?.fail(failure(request(&drops, 10)?.into_context()));
        place(&queue)?.complete(done(request(&drops, 10)?.into_context(), flags));
        assert_eq!(drops.load(Relaxed), 0);
        drop(queue);
        assert_eq!(drops.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn what_the_device_keeps_never_comes_back() -> Result {
        let _provider = Fake::register()?;
        let queue = Queue::open(&domain()?, CompletionQueueOptions::default().size(4))?;
        let drops = drops()?;
        let context = request(&drops, 10)?.into_context();
        let mut kept = failure(context);
        kept.errno = Errno::ENOTRECOVERABLE;
        place(&queue)?.fail(kept);
        assert!(matches!(queue.read()?, Some(Ended::Lost(_))));
        drop(queue);
        assert_eq!(drops.load(Relaxed), 0);
        // SAFETY: The context came from `into_context`, and the queue has leaked it.
        drop(unsafe { Request::<KVec<u8>, Drops>::from_context(context.addr()) });
        assert_eq!(drops.load(Relaxed), 1);
        Ok(())
    }

    /// A handler that counts transfers by their result.
    struct Counts(Arc<Atomic<i32>>);

    impl RequestHandler<KVec<u8>, Drops> for Counts {
        fn ended(&self, ended: Ended<KVec<u8>, Drops>) {
            let value = match ended {
                Ended::Done(..) => 1,
                Ended::Failed(..) => 10,
                Ended::Lost(_) => 1000,
                Ended::InjectFailed(_) => 100,
            };
            self.0.fetch_add(value, Relaxed);
        }
    }

    #[test]
    fn handlers_get_requests() -> Result {
        let _provider = Fake::register()?;
        let (count, drops) = (drops()?, drops()?);
        let handler = KBox::new(Counts(count.clone()), GFP_KERNEL)?;
        let options = CompletionQueueOptions::default().size(4);
        let queue = Queue::open_with(&domain()?, options, handler)?;
        place(&queue)?.complete(done(
            request(&drops, 10)?.into_context(),
            kfi_bindings::KFI_WRITE,
        ));
        place(&queue)?.fail(failure(request(&drops, 10)?.into_context()));
        place(&queue)?.fail(failure(ptr::null_mut()));
        assert_eq!((count.load(Relaxed), drops.load(Relaxed)), (111, 2));
        drop(queue);
        assert!(Arc::into_unique_or_drop(count).is_some());
        Ok(())
    }

    #[test]
    fn addresses_are_asked_for_and_found() -> Result {
        use core::net::{
            IpAddr,
            Ipv4Addr,
            SocketAddr, //
        };
        let near = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);
        let far = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 2);
        let hints = Hints::new()?.msg().source(far)?.source(near)?.peer(far)?;
        // SAFETY: The info is valid as long as the hints are.
        let info = unsafe { &*hints.as_raw().cast::<Info>() };
        assert!(info.is_msg());
        assert_eq!((info.source(), info.peer()), (Some(near), Some(far)));
        Ok(())
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_noio)]
mod tests_of_noio {
    use super::*;

    /// Numbers of checks whether allocations avoid I/O: all checks, and those that failed.
    struct Looks {
        all: Atomic<i32>,
        outside: Atomic<i32>,
    }

    impl Looks {
        const NONE: Self = Self {
            all: Atomic::new(0),
            outside: Atomic::new(0),
        };

        fn look(&self) {
            self.all.fetch_add(1, Relaxed);
            if !NoIo::is_entered() {
                self.outside.fetch_add(1, Relaxed);
            }
        }

        /// Returns the numbers since the last call.
        fn take(&self) -> (i32, i32) {
            (self.all.xchg(0, Relaxed), self.outside.xchg(0, Relaxed))
        }
    }

    /// A buffer that checks when it is listed and when it is dropped.
    struct Probe(KVec<u8>, Arc<Looks>);

    // SAFETY: The vector owns the bytes, which stay in place until it is dropped.
    unsafe impl Buffer for Probe {
        fn start(&self) -> NonNull<u8> {
            self.1.look();
            self.0.start()
        }

        fn size(&self) -> usize {
            self.0.len()
        }
    }

    impl Drop for Probe {
        fn drop(&mut self) {
            self.1.look();
        }
    }

    #[test]
    fn lists_are_built_without_io() -> Result {
        let (_provider, domain) = Fake::open()?;
        let looks = Arc::new(Looks::NONE, GFP_KERNEL)?;
        let probe = || -> Result<Probe> { Ok(Probe(bytes(0, 10)?, looks.clone())) };

        drop(domain.reg(probe()?, access())?);
        assert_eq!(looks.take(), (2, 0));
        let segments = Segments::new(kernel::kvec![probe()?, probe()?]?);
        drop(domain.regv(segments, access())?);
        assert_eq!(looks.take(), (4, 0));
        drop(domain.regattr(probe()?, access(), None)?);
        assert_eq!(looks.take(), (2, 0));
        assert!(!NoIo::is_entered());
        Ok(())
    }

    static CALLS: Looks = Looks::NONE;

    /// Counts the call, and fails.
    ///
    /// # Safety
    ///
    /// It has no requirements. The type of the operation is unsafe.
    unsafe extern "C" fn regbv(
        _fid: *mut kfid,
        _list: *const bio_vec,
        _count: usize,
        _access: u64,
        _offset: u64,
        _requested_key: u64,
        _flags: u64,
        _mr: *mut *mut kfid_mr,
        _context: *mut c_void,
    ) -> c_int {
        CALLS.look();
        Errno::EIO.to_c()
    }

    /// Counts the call, and fails.
    ///
    /// # Safety
    ///
    /// It has no requirements. The type of the operation is unsafe.
    unsafe extern "C" fn control(_fid: *mut kfid, _command: c_int, _arg: *mut c_void) -> c_int {
        CALLS.look();
        Errno::EIO.to_c()
    }

    /// Counts the call, and fails.
    ///
    /// # Safety
    ///
    /// It has no requirements. The type of the operation is unsafe.
    unsafe extern "C" fn ops_open(
        _fid: *mut kfid,
        _name: *const c_char,
        _flags: u64,
        _ops: *mut *mut c_void,
        _context: *mut c_void,
    ) -> c_int {
        CALLS.look();
        Errno::EIO.to_c()
    }

    /// Checks calls, which are in the same scope as the consumer's allocations.
    #[test]
    fn calls_are_made_without_io() -> Result {
        let (_provider, domain) = Fake::open()?;
        let raw = domain.as_raw();
        let mut table = kfi_ops_mr {
            regbv: Some(regbv),
            ..pin_init::zeroed()
        };
        let pages = Pages::zeroed(10)?;
        let call = || domain.regbv(pages, access()).err();
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        let refused = unsafe { with_table(&raw mut (*raw).mr, &mut table, call) };
        assert!(refused.is_some_and(|error| error.errno() == Errno::EIO));
        assert_eq!(CALLS.take(), (1, 0));

        let mut ops = kfi_ops {
            control: Some(control),
            ops_open: Some(ops_open),
            ..pin_init::zeroed()
        };
        let mr = domain.reg(bytes(0, 10)?, access())?;
        let key = mr.raw_key()?;
        let mapped = domain.map_raw(key.base(), key.as_bytes())?;
        // SAFETY: The region is open, and nobody else uses it.
        let refused = unsafe {
            with_table(&raw mut (*mr.as_raw()).fid.ops, &mut ops, || {
                mr.raw_key().err()
            })
        };
        assert_eq!(refused, Some(Errno::EIO));
        assert_eq!(CALLS.take(), (1, 0));
        let resolve = || mapped.resolve(key.base(), 1).err();
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        assert_eq!(
            unsafe { with_table(&raw mut (*raw).fid.ops, &mut ops, resolve) },
            Some(Errno::EIO)
        );
        let pages = Pages::zeroed(10)?;
        let map = || MappedList::map(&domain, pages, access()).err();
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        let refused = unsafe { with_table(&raw mut (*raw).fid.ops, &mut ops, map) };
        assert!(refused.is_some_and(|error| error.errno() == Errno::EIO));
        assert_eq!(CALLS.take(), (2, 0));
        Ok(())
    }

    /// The result of the check in a handler.
    #[pin_data]
    struct Seen {
        #[pin]
        inside: Mutex<Option<bool>>,
        #[pin]
        changed: CondVar,
    }

    struct Looking(Arc<Seen>);

    impl EventHandler for Looking {
        fn events(&self, events: Events<'_>) {
            *self.0.inside.lock() = Some(NoIo::is_entered());
            while let Ok(Some(_)) = events.read() {}
            self.0.changed.notify_all();
        }
    }

    #[test]
    fn handlers_run_without_io() -> Result {
        let _provider = Fake::register()?;
        let fabric = fabric()?;
        let seen = Arc::pin_init(
            pin_init!(Seen {
                inside <- new_mutex!(None),
                changed <- new_condvar!(),
            }),
            GFP_KERNEL,
        )?;
        let handler = KBox::new(Looking(seen.clone()), GFP_KERNEL)?;
        let options = EventQueueOptions::default().writable().handler(handler);
        let queue = EventQueue::open(&fabric, options)?;
        queue.events().write(&Event::Notify(Entry {
            object: 1,
            context: 0,
            data: 0,
        }))?;
        let mut inside = seen.inside.lock();
        while inside.is_none() {
            seen.changed.wait(&mut inside);
        }
        assert_eq!(*inside, Some(true));
        drop(inside);
        Ok(EventQueue::close(queue)?)
    }
}
