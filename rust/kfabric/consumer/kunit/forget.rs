// SPDX-License-Identifier: GPL-2.0

//! Unit tests of handlers and providers that are forgotten, and whose module goes.
//!
//! The module is the core, which only seems to go.

#[kernel::macros::kunit_tests(kfabric_consumer_forget)]
mod tests {
    use crate::{
        api::answer::Registration,
        consumer::{
            call,
            kunit::fake::{
                access,
                domain,
                hints,
                Fake,
                HOLD,
                HOLDS, //
            },
            *, //
        },
        prelude::*,
        support::module::{
            this_module,
            Owner, //
        },
        unload, //
    };
    use kernel::sync::Completion;

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

    fn fabric() -> Result<Arc<Fabric>, Errno> {
        Fabric::open(hints()?.getinfo()?.first())
    }

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

    /// A buffer in static memory, for tests that leak it.
    struct Static;

    static BYTES: Atomic<u64> = Atomic::new(0);

    // SAFETY: The bytes are static, and nobody else accesses them. One buffer is open at a time.
    unsafe impl Buffer for Static {
        fn start(&self) -> NonNull<u8> {
            NonNull::from(&BYTES).cast()
        }

        fn size(&self) -> usize {
            8
        }
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
                if let Ok(mr) = self.0.domain.reg(Static, options) {
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
        let provider = Fake::register()?;
        let domain = domain()?;
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
        assert_eq!(unsafe { call::close(fid) }, Ok(()));
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
