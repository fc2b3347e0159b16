// SPDX-License-Identifier: GPL-2.0

//! Unit tests of closing, and of handlers and providers that are forgotten.
//!
//! The tests call `module_gone()` or `unload::gone()` for the core, which stays loaded.

use super::*;
use crate::{
    api::answer::Registration,
    support::module::{
        this_module,
        Owner, //
    },
    unload, //
};
use kernel::sync::Completion;

#[kernel::macros::kunit_tests(kfabric_consumer_close)]
mod tests {
    use super::*;

    /// A buffer that counts how often it was dropped.
    struct Probe;

    static DROPPED: Atomic<i32> = Atomic::new(0);

    // SAFETY: The bytes are those of a static buffer.
    unsafe impl Buffer for Probe {
        fn start(&self) -> NonNull<u8> {
            StaticBuffer(16).start()
        }

        fn size(&self) -> usize {
            16
        }
    }

    impl Drop for Probe {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn memory_that_can_still_be_reached_is_not_dropped() -> Result {
        let (_provider, domain) = Fake::open()?;
        drop(domain.reg(Probe, access())?);
        assert!(DROPPED.load(Relaxed) == 1);

        let mr = domain.reg(Probe, access())?;
        STUCK.store(true, Relaxed);
        drop(mr);
        assert!(DROPPED.load(Relaxed) == 1);

        let mr = domain.reg(Probe, access())?;
        STUCK.store(true, Relaxed);
        let error = mr.close().err();
        assert!(error.is_some_and(|error| error.errno() == Errno::EIO));
        assert!(DROPPED.load(Relaxed) == 1);
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn a_close_that_fails_after_a_failed_registration_is_told() -> Result {
        let (_provider, domain) = Fake::open()?;
        UNABLE.store(true, Relaxed);
        let error = domain.reg(bytes(0, 10)?, access()).err().ok_or(EINVAL)?;
        assert_eq!(error.errno(), Errno::ENODEV);
        assert!(error.into_inner().is_some());

        let dropped = DROPPED.load(Relaxed);
        UNABLE.store(true, Relaxed);
        STUCK.store(true, Relaxed);
        let error = domain.reg(Probe, access()).err().ok_or(EINVAL)?;
        assert_eq!(error.errno(), Errno::ENOTRECOVERABLE);
        assert!(error.into_inner().is_none());
        assert_eq!(DROPPED.load(Relaxed), dropped);
        Ok(Domain::close(domain)?)
    }

    /// Refuses to close.
    ///
    /// # Safety
    ///
    /// It has no requirements. The type of the operation is unsafe.
    unsafe extern "C" fn busy(_fid: *mut kfi_bindings::kfid) -> kernel::ffi::c_int {
        Errno::EBUSY.to_c()
    }

    #[test]
    fn a_busy_region_can_be_closed_later() -> Result {
        let _provider = Fake::register()?;
        let mr = domain()?.reg(bytes(0, 10)?, access())?;
        let fid = mr.as_raw().cast::<kfi_bindings::kfid>();
        let mut refusing = kfi_bindings::kfi_ops {
            close: Some(busy),
            ..pin_init::zeroed()
        };
        // SAFETY: The region of `fid` is open, also after the refusal, and nobody else uses it.
        let refused =
            unsafe { with_table(&raw mut (*fid).ops, &mut refusing, || mr.close().err()) };
        let error = refused.ok_or(EINVAL)?;
        assert!(error.errno() == Errno::EBUSY);
        let mr = error.into_inner().ok_or(EINVAL)?;
        assert!(mr.close()? == bytes(0, 10)?);
        Ok(())
    }

    #[test]
    fn calls_beyond_the_end_of_a_table_are_not_made() -> Result {
        let (_provider, domain) = Fake::open()?;
        let raw = domain.as_raw();
        // SAFETY: The domain `raw` is open, and has a table.
        let mut older = unsafe { *(*raw).mr };
        older.size = core::mem::offset_of!(kfi_bindings::kfi_ops_mr, regbv);
        let (buffer, pages) = (bytes(0, 10)?, Pages::zeroed(10)?);
        let calls = || {
            let known = domain.reg(buffer, access()).is_ok();
            (known, domain.regbv(pages, access()).err())
        };
        // SAFETY: The domain `raw` is open, and nobody else uses it.
        let (known, unknown) = unsafe { with_table(&raw mut (*raw).mr, &mut older, calls) };
        assert!(known);
        assert!(unknown.is_some_and(|error| error.errno() == Errno::ENOSYS));
        Ok(())
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_forget)]
mod tests_of_forget {
    use super::*;

    /// Returns the module with the code for `T`.
    fn owner_of<T>() -> Result<Owner> {
        this_module!().ok_or(ENOENT)
    }

    struct Seen {
        called: Atomic<u32>,
        dropped: Atomic<u32>,
    }

    impl Seen {
        const NOTHING: Self = Self {
            called: Atomic::new(0),
            dropped: Atomic::new(0),
        };
    }

    struct Handler(Arc<Seen>);

    impl EventHandler for Handler {
        fn events(&self, events: Events<'_>) {
            self.0.called.fetch_add(1, Relaxed);
            while let Ok(Some(_)) = events.read() {}
        }
    }

    impl Drop for Handler {
        fn drop(&mut self) {
            self.0.dropped.fetch_add(1, Relaxed);
        }
    }

    const NOTIFY: Event = Event::Notify(Entry {
        object: 1,
        context: 0,
        data: 0,
    });

    fn options(seen: &Arc<Seen>) -> Result<EventQueueOptions<Handler>> {
        let handler = KBox::new(Handler(seen.clone()), GFP_KERNEL)?;
        Ok(EventQueueOptions::default().writable().handler(handler))
    }

    #[test]
    fn handlers_go_with_their_module() -> Result {
        let _provider = Fake::register()?;
        let seen = Arc::new(Seen::NOTHING, GFP_KERNEL)?;
        let queue = EventQueue::open(&fabric()?, options(&seen)?)?;
        let other = EventQueue::open(&fabric()?, options(&seen)?)?;
        assert_eq!(seen.dropped.load(Relaxed), 0);
        module_gone(owner_of::<()>()?);
        assert_eq!(seen.dropped.load(Relaxed), 2);
        queue.events().write(&NOTIFY)?;
        // This would wait for the handler.
        EventQueue::close(queue)?;
        drop(other);
        assert_eq!(seen.called.load(Relaxed), 0);
        assert_eq!(seen.dropped.load(Relaxed), 2);
        // No handler is left, and a module that stays can add others.
        module_gone(owner_of::<()>()?);
        let queue = EventQueue::open(&fabric()?, options(&seen)?)?;
        EventQueue::close(queue)?;
        assert_eq!(seen.dropped.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn modules_are_not_kept() -> Result {
        let _provider = Fake::register()?;
        let references = || -> Result<i32> {
            // SAFETY: A module is loaded while its code runs.
            Ok(unsafe { kernel::bindings::module_refcount(owner_of::<()>()?.as_ptr()) })
        };
        let fabric = fabric()?;
        let (before, seen) = (references()?, Arc::new(Seen::NOTHING, GFP_KERNEL)?);
        let queue = EventQueue::open(&fabric, options(&seen)?)?;
        assert_eq!(references()?, before);
        EventQueue::close(queue)?;
        Ok(())
    }

    #[test]
    fn a_handler_that_was_not_given_away_is_dropped() -> Result {
        let _provider = Fake::register()?;
        let seen = Arc::new(Seen::NOTHING, GFP_KERNEL)?;
        let refused = EventQueue::open(&fabric()?, options(&seen)?.size(usize::MAX)).err();
        assert_eq!(refused, Some(Errno::EINVAL));
        assert_eq!(seen.dropped.load(Relaxed), 1);
        drop(options(&seen)?);
        assert_eq!(seen.dropped.load(Relaxed), 2);
        Ok(())
    }

    /// The state of a handler that registers a region, and drops it during the registration.
    #[pin_data]
    struct Drops {
        domain: Arc<Domain>,
        region: Atomic<usize>,
        called: Atomic<u32>,
        #[pin]
        done: Completion,
    }

    struct Dropping(Arc<Drops>);

    impl EventHandler for Dropping {
        fn events(&self, events: Events<'_>) {
            self.0.called.fetch_add(1, Relaxed);
            while let Ok(Some(_)) = events.read() {}
            if self.0.region.load(Relaxed) == 0 {
                let options = Options::new(access()).requested_key(HOLDS);
                if let Ok(mr) = self.0.domain.reg(StaticBuffer(8), options) {
                    self.0.region.store(mr.object(), Relaxed);
                    // Closing fails here. So the region, the domain and the queue stay open.
                    drop(mr);
                }
                self.0.done.complete_all();
            }
        }
    }

    #[test]
    fn regions_left_open_in_the_handler() -> Result {
        let (provider, domain) = Fake::open()?;
        let own = domain.clone();
        let drops = pin_init!(Drops {
            domain: own,
            region: Atomic::new(0),
            called: Atomic::new(0),
            done <- Completion::new(),
        });
        let drops = Arc::pin_init(drops, GFP_KERNEL)?;
        let handler = KBox::new(Dropping(drops.clone()), GFP_KERNEL)?;
        let options = EventQueueOptions::default().writable().handler(handler);
        let queue = EventQueue::open(domain.fabric(), options)?;
        domain.bind(&queue)?;
        HOLD.store(true, Relaxed);
        queue.events().write(&NOTIFY)?;
        drops.done.wait_for_completion();
        module_gone(owner_of::<()>()?);
        // The region's event comes after the module is gone.
        HOLD.store(false, Relaxed);
        let region = drops.region.load(Relaxed);
        assert!(region != 0);
        let fid = NonNull::new(core::ptr::without_provenance_mut(region)).ok_or(EINVAL)?;
        // SAFETY: The region of `fid` is open, and nobody else uses it. Closing waits for its
        // registration.
        assert_eq!(unsafe { handle::close(fid) }, Ok(()));
        assert_eq!(drops.called.load(Relaxed), 1);
        // SAFETY: The leaked region owned this reference.
        drop(unsafe { Arc::from_raw(Arc::as_ptr(&domain)) });
        drop((drops, queue, domain, provider));
        Ok(())
    }

    #[test]
    fn providers_go_with_their_module() -> Result {
        let registration = Registration::<Fake>::new()?;
        assert!(hints()?.getinfo().is_ok());
        unload::gone(owner_of::<()>()?);
        assert_eq!(hints()?.getinfo().err(), Some(Errno::ENODATA));
        // Dropping it does nothing more.
        drop(registration);
        assert!(Registration::<Fake>::new().is_ok());
        Ok(())
    }
}
