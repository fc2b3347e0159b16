// SPDX-License-Identifier: GPL-2.0

//! Unit tests of where a consumer's code runs: not where an allocation could wait for I/O.

#[kernel::macros::kunit_tests(kfabric_consumer_noio)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                domain,
                hints,
                Fake, //
            },
            *, //
        },
        prelude::*, //
    };
    use kernel::{
        new_condvar,
        new_mutex,
        sync::{
            CondVar,
            Mutex, //
        }, //
    };
    use kfi_bindings::{
        bio_vec,
        kfi_ops,
        kfi_ops_mr,
        kfid,
        kfid_mr, //
    };

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
        let _provider = Fake::register()?;
        let domain = domain()?;
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

    /// Calls `f` while an object has another table.
    ///
    /// # Safety
    ///
    /// `fid` is an open object, and nobody else uses it.
    unsafe fn with_ops<R>(fid: *mut kfid, ops: &mut kfi_ops, f: impl FnOnce() -> R) -> R {
        // SAFETY: `fid` is open by this function's contract. `ops` lives until the own table is
        // restored.
        let own = unsafe { core::mem::replace(&mut (*fid).ops, ops) };
        let done = f();
        // SAFETY: `fid` is open by this function's contract. `own` is its own table.
        unsafe { (*fid).ops = own };
        done
    }

    /// Checks calls, which are in the same scope as the consumer's allocations.
    #[test]
    fn calls_are_made_without_io() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let raw = domain.as_raw();
        let mut table = kfi_ops_mr {
            regbv: Some(regbv),
            ..pin_init::zeroed()
        };
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        let own = unsafe { core::mem::replace(&mut (*raw).mr, &mut table) };
        let refused = domain.regbv(Pages::zeroed(10)?, access()).err();
        // SAFETY: The domain `raw` is open. `own` is its own table.
        unsafe { (*raw).mr = own };
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
        let refused = unsafe { with_ops(mr.as_raw().cast(), &mut ops, || mr.raw_key().err()) };
        assert_eq!(refused, Some(Errno::EIO));
        assert_eq!(CALLS.take(), (1, 0));
        let resolve = || mapped.resolve(key.base(), 1).err();
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        assert_eq!(
            unsafe { with_ops(raw.cast(), &mut ops, resolve) },
            Some(Errno::EIO)
        );
        let pages = Pages::zeroed(10)?;
        let map = || MappedList::map(&domain, pages, access()).err();
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        let refused = unsafe { with_ops(raw.cast(), &mut ops, map) };
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
        let fabric = Fabric::open(hints()?.getinfo()?.first())?;
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
