// SPDX-License-Identifier: GPL-2.0

//! Unit tests of event queues, through the API for consumers; what the core puts in is put in by
//! the tests.

#[kernel::macros::kunit_tests(kfabric_consumer_eq)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                hints,
                Fake,
                FAILS, //
            },
            *, //
        },
        object::{
            binding::Bindable,
            eq::{
                BoundEq,
                EqBody,
                EqObject,
                Unread, //
            },
            info::InfoChain, //
        },
        prelude::*, //
    };
    use core::ptr::without_provenance_mut as addr;
    use kernel::{
        new_condvar,
        new_mutex,
        sync::{
            CondVar,
            Mutex, //
        }, //
    };

    fn fabric() -> Result<Arc<Fabric>, Errno> {
        Fabric::open(hints()?.getinfo()?.first())
    }

    fn options(size: usize) -> EventQueueOptions {
        EventQueueOptions::default().size(size).waits().writable()
    }

    /// Returns the core's reference of an object that is bound to the queue.
    fn core_side(queue: &EventQueue) -> Result<BoundEq> {
        // SAFETY: The queue is open, because it is borrowed.
        let object = unsafe { EqObject::from_fid(queue.as_raw().cast()) }?;
        Ok(EqBody::bound(object)?)
    }

    fn entry(object: usize) -> Entry {
        Entry {
            object,
            context: object + 1,
            data: 7,
        }
    }

    fn complete(core: &BoundEq, object: usize) -> Option<Unread> {
        let context = addr(object + 1);
        core.complete(kfi_bindings::KFI_MR_COMPLETE, addr(object), context, 7)
    }

    fn fail(core: &BoundEq, object: usize) -> Option<Unread> {
        let refusal = Refusal::new(Errno::ENODEV, c"made up by a test");
        core.fail(addr(object), addr(object + 1), refusal)
    }

    fn completed(object: usize) -> Option<Next> {
        Some(Next::Event(Event::MrComplete(entry(object))))
    }

    fn failed(object: usize) -> Option<Next> {
        Some(Next::Failed(Failure {
            object,
            context: object + 1,
            errno: Errno::ENODEV,
        }))
    }

    #[test]
    fn failures_come_before_events() -> Result {
        let _provider = Fake::register()?;
        let queue = EventQueue::open(&fabric()?, options(4))?;
        let core = core_side(&queue)?;
        complete(&core, 16);
        fail(&core, 32);
        fail(&core, 48);
        complete(&core, 64);
        let events = queue.events();
        assert_eq!(events.read()?, failed(32));
        assert_eq!(events.wait(None)?, failed(48));
        assert_eq!(events.read()?, completed(16));
        assert_eq!(events.wait(Some(1))?, completed(64));
        assert_eq!(events.read()?, None);
        assert_eq!(events.wait(Some(1))?, None);
        Ok(EventQueue::close(queue)?)
    }

    #[test]
    fn nothing_is_lost_silently() -> Result {
        let _provider = Fake::register()?;
        let queue = EventQueue::open(&fabric()?, options(2))?;
        let core = core_side(&queue)?;
        for object in [16, 32, 48, 64] {
            complete(&core, object);
            fail(&core, object);
        }
        let events = queue.events();
        let notify = Event::Notify(entry(1));
        assert_eq!(events.write(&notify), Err(Errno::EAGAIN));
        assert_eq!(events.read()?, failed(16));
        assert_eq!(events.read()?, failed(32));
        assert_eq!(events.read()?, Some(Next::Lost));
        assert_eq!(events.read()?, completed(16));
        assert_eq!(events.write(&notify), Ok(()));
        assert_eq!(events.read()?, completed(32));
        assert_eq!(events.read()?, Some(Next::Lost));
        assert_eq!(events.read()?, Some(Next::Event(notify)));
        assert_eq!(events.read()?, None);
        Ok(EventQueue::close(queue)?)
    }

    #[test]
    fn what_is_forgotten_is_not_read() -> Result {
        let _provider = Fake::register()?;
        let queue = EventQueue::open(&fabric()?, options(8))?;
        let core = core_side(&queue)?;
        let events = queue.events();
        // The queue keeps a consumer's own event of the object.
        events.write(&Event::Notify(entry(32)))?;
        let mut unread = KVec::new();
        for object in [16, 32, 48] {
            let put = [complete(&core, object), fail(&core, object)];
            unread.push(put, GFP_KERNEL)?;
        }
        for unread in unread[1].into_iter().flatten() {
            core.forget(unread);
        }
        assert_eq!(events.read()?, failed(16));
        assert_eq!(events.read()?, failed(48));
        assert_eq!(events.read()?, Some(Next::Event(Event::Notify(entry(32)))));
        assert_eq!(events.read()?, completed(16));
        assert_eq!(events.read()?, completed(48));
        assert_eq!(events.read()?, None);
        for unread in unread[0].into_iter().flatten() {
            core.forget(unread);
        }
        Ok(EventQueue::close(queue)?)
    }

    #[test]
    fn a_bound_queue_can_be_closed() -> Result {
        let _provider = Fake::register()?;
        let queue = EventQueue::open(&fabric()?, options(2))?;
        let bound = core_side(&queue)?;
        let unread = [complete(&bound, 16), fail(&bound, 32)];
        assert!(bound.is_open() && unread.iter().all(Option::is_some));
        EventQueue::close(queue)?;
        assert!(!bound.is_open() && !bound.in_handler());
        assert!(complete(&bound, 16).is_none() && fail(&bound, 32).is_none());
        let writer = bound.writer(addr(16), addr(17));
        assert!(!writer.try_connection(kfi_bindings::KFI_CONNREQ, InfoChain::none(), &[1]));
        for unread in unread.into_iter().flatten() {
            bound.forget(unread);
        }
        bound.forget_all(addr(16));
        Ok(())
    }

    #[test]
    fn events_go_in_and_come_out() -> Result {
        let _provider = Fake::register()?;
        let queue = EventQueue::open(&fabric()?, options(8))?;
        let events = queue.events();
        let all = [
            Event::Notify(entry(1)),
            Event::MrComplete(entry(2)),
            Event::AvComplete(entry(3)),
            Event::JoinComplete(entry(4)),
            Event::Other(kfi_bindings::KFI_CONNECTED, Bytes::new(&[5; 128])?),
            Event::Other(kfi_bindings::KFI_NOTIFY, Bytes::new(b"six")?),
        ];
        for event in &all {
            events.write(event)?;
        }
        for event in all {
            assert_eq!(events.read()?, Some(Next::Event(event)));
        }
        assert!(Bytes::new(&[0; 129]).is_err());
        let nothing = Event::Other(0, Bytes::new(&[])?);
        assert_eq!(events.write(&nothing), Err(Errno::EINVAL));
        let unknown = Event::Other(7, Bytes::new(b"7")?);
        assert_eq!(events.write(&unknown), Err(Errno::EINVAL));
        Ok(EventQueue::close(queue)?)
    }

    #[test]
    fn what_was_not_asked_for_is_not_there() -> Result {
        let _provider = Fake::register()?;
        let fabric = fabric()?;
        let queue = EventQueue::open(&fabric, EventQueueOptions::default())?;
        let events = queue.events();
        let notify = Event::Notify(entry(1));
        assert_eq!(events.wait(Some(0)), Err(Errno::ENOSYS));
        assert_eq!(events.write(&notify), Err(Errno::ENOSYS));
        let too_large = EventQueueOptions::default().size(usize::MAX);
        let error = EventQueue::open(&fabric, too_large).err();
        assert_eq!(error, Some(Errno::EINVAL));
        Ok(EventQueue::close(queue)?)
    }

    #[test]
    fn regions_are_registered_behind_ones_back() -> Result {
        let _provider = Fake::register()?;
        let offers = hints()?.getinfo()?;
        let fabric = Fabric::open(offers.first())?;
        let queue = EventQueue::open(&fabric, options(8))?;
        let domain = Domain::open(&fabric, offers.first())?;
        domain.bind(&queue)?;
        assert_eq!(domain.bind(&queue), Err(Errno::EINVAL));
        let options = Options::new(access()).context(0x1234);
        let mr = domain.reg(bytes(0, 10)?, options)?;
        let event = queue.events().wait(None)?;
        let entry = match event {
            Some(Next::Event(Event::MrComplete(entry))) => entry,
            _ => return Err(EIO),
        };
        assert_eq!((entry.object, entry.context), (mr.object(), 0x1234));
        assert!(mr.key() != u64::MAX);
        assert!(mr.close()? == bytes(0, 10)?);

        let options = options.requested_key(FAILS).context(usize::MAX);
        let mr = domain.regattr(bytes(0, 10)?, options, None)?;
        let failure = Failure {
            object: mr.object(),
            context: usize::MAX,
            errno: Errno::ENODEV,
        };
        assert_eq!(queue.events().wait(None)?, Some(Next::Failed(failure)));
        drop(mr);

        // Closing a region at once removes its event.
        let mr = domain.reg(bytes(0, 10)?, access())?;
        assert!(mr.close()? == bytes(0, 10)?);
        assert_eq!(queue.events().read()?, None);

        // The domain has a reference to the queue.
        let error = EventQueue::close(queue).err().ok_or(EINVAL)?;
        assert!(error.into_inner().is_none());
        Ok(Domain::close(domain)?)
    }

    /// The sum of the objects in events, and whether the handler was dropped.
    #[pin_data]
    struct Sum {
        #[pin]
        sum: Mutex<(usize, bool)>,
        #[pin]
        changed: CondVar,
    }

    struct Adds(Arc<Sum>);

    impl EventHandler for Adds {
        fn events(&self, events: Events<'_>) {
            while let Ok(Some(Next::Event(Event::Notify(entry)))) = events.read() {
                self.0.sum.lock().0 += entry.object;
            }
            self.0.changed.notify_all();
        }
    }

    impl Drop for Adds {
        fn drop(&mut self) {
            self.0.sum.lock().1 = true;
        }
    }

    #[test]
    fn handlers_are_called_and_dropped() -> Result {
        let _provider = Fake::register()?;
        let sum = Arc::pin_init(
            pin_init!(Sum {
                sum <- new_mutex!((0, false)),
                changed <- new_condvar!(),
            }),
            GFP_KERNEL,
        )?;
        let handler = KBox::new(Adds(sum.clone()), GFP_KERNEL)?;
        let queue = EventQueue::open(&fabric()?, options(8).handler(handler))?;
        for object in 1..=3 {
            queue.events().write(&Event::Notify(entry(object)))?;
        }
        let mut so_far = sum.sum.lock();
        while so_far.0 < 6 {
            sum.changed.wait(&mut so_far);
        }
        assert!(!so_far.1);
        drop(so_far);
        EventQueue::close(queue)?;
        assert_eq!(*sum.sum.lock(), (6, true));
        Ok(())
    }
}
