// SPDX-License-Identifier: GPL-2.0

//! Unit tests of event queues, counters, endpoints and descriptors of regions.

use super::*;
use crate::object::{
    binding::Bindable,
    cntr::CounterObject,
    domain::DomainObject,
    ep,
    eq::{
        EqBody,
        EqCore,
        EqObject,
        Unread, //
    },
    info::InfoChain, //
};
use core::ptr::without_provenance_mut as addr;
use kfi_bindings::kfi_ep_attr;

#[kernel::macros::kunit_tests(kfabric_consumer_objects)]
mod tests {
    use super::*;

    #[test]
    fn counters_count() -> Result {
        let (_provider, domain) = Fake::open()?;
        let counter = Counter::open(&domain)?;
        counter.add(3)?;
        counter.adderr(2)?;
        assert!((counter.read(), counter.readerr()) == (3, 2));
        counter.set(9)?;
        counter.seterr(0)?;
        assert!((counter.read(), counter.readerr()) == (9, 0));
        assert!(counter.wait(9, None) == Ok(()));
        assert!(counter.wait(10, Some(1)) == Err(Errno::ETIMEDOUT));
        // The counter keeps its domain open.
        assert!(Domain::close(domain).err().map(|e| e.errno()) == Some(Errno::EBUSY));
        assert!(OPEN.load(Relaxed) == 1);
        counter.close()?;
        assert!(OPEN.load(Relaxed) == 0);
        Ok(())
    }

    #[test]
    fn regions_keep_what_counts() -> Result {
        let _provider = Fake::register()?;
        let counter = Counter::open(&domain()?)?;
        let kept = {
            // SAFETY: The counter is open. The reference is not used after it is closed.
            let object =
                unsafe { CounterObject::from_fid(counter.as_raw().cast()) }.map_err(|_| EINVAL)?;
            assert!(ptr::eq(
                ptr::from_ref(object.parent()).cast(),
                counter.domain().as_raw()
            ));
            object.counter.clone()
        };
        kept.add(4);
        assert!(counter.read() == 4 && kept.is_open());
        drop(counter);
        assert!(!kept.is_open());
        kept.add(1);
        Ok(())
    }

    #[test]
    fn only_counters_are_counters() -> Result {
        let (_provider, domain) = Fake::open()?;
        // SAFETY: The fids are null or that of an open object.
        let (none, other) = unsafe {
            (
                CounterObject::from_fid(ptr::null_mut()),
                CounterObject::from_fid(domain.as_raw().cast()),
            )
        };
        assert!(none.is_err() && other.is_err());
        Ok(())
    }

    #[test]
    fn endpoints_are_doors() -> Result {
        let _provider = Fake::register()?;
        let offers = hints()?.getinfo()?;
        let endpoint = Endpoint::open(&domain()?, offers.first())?;
        // SAFETY: The endpoint is open.
        let door = unsafe { ep::from_fid(endpoint.as_raw().cast()) }.ok_or(EINVAL)?;
        assert!(door.enter().is_none() && door.auth_key().is_empty());
        endpoint.enable()?;
        assert!(endpoint.enable() == Err(Errno::EOPBADSTATE));
        assert!(door.enter().is_some());
        endpoint.close()?;
        assert!(door.enter().is_none() && !door.is_open());
        assert!(OPEN.load(Relaxed) == 0);
        Ok(())
    }

    /// Opens an endpoint by the domain's operation.
    fn raw_endpoint(domain: &Arc<Domain>, info: &mut kfi_info) -> (i32, *mut kfid_ep) {
        let raw: *mut kfid_domain = domain.as_raw();
        let mut ep = ptr::without_provenance_mut(1);
        // SAFETY: The domain is open. The info is valid with all that it points to.
        let ret = unsafe { ep::open::open(raw, info, &mut ep, ptr::null_mut()) };
        (ret, ep)
    }

    #[test]
    fn endpoints_have_keys_and_limits() -> Result {
        let (_provider, domain) = Fake::open()?;
        let mut key = *b"key";
        let mut attr = kfi_ep_attr {
            auth_key: key.as_mut_ptr(),
            auth_key_size: key.len(),
            ..pin_init::zeroed()
        };
        let mut info = kfi_info {
            ep_attr: &mut attr,
            ..pin_init::zeroed()
        };
        let (ret, ep) = raw_endpoint(&domain, &mut info);
        assert!(ret == 0);
        // SAFETY: The endpoint `ep` was just opened. It is closed once, here.
        let (door, closed) = unsafe {
            let door = ep::from_fid(ep.cast());
            (door, (*(*ep).fid.ops).close.map(|close| close(ep.cast())))
        };
        assert!(door.is_some_and(|door| door.auth_key() == b"key" && door.id() != 0));
        assert!(closed == Some(0));

        // SAFETY: `info` points to `attr`, which nobody else uses.
        unsafe { (*info.ep_attr).auth_key = ptr::null_mut() };
        assert!(raw_endpoint(&domain, &mut info) == (Errno::EINVAL.to_c(), ptr::null_mut()));
        // SAFETY: `info` points to `attr`, which nobody else uses.
        unsafe {
            (*info.ep_attr).auth_key_size = 0;
            (*info.ep_attr).type_ = kfi_bindings::kfi_ep_type_KFI_EP_MSG;
        }
        assert!(raw_endpoint(&domain, &mut info) == (Errno::ENODATA.to_c(), ptr::null_mut()));
        info.ep_attr = ptr::null_mut();
        info.handle = domain.as_raw().cast();
        assert!(raw_endpoint(&domain, &mut info) == (Errno::EINVAL.to_c(), ptr::null_mut()));
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn endpoints_transfer_nothing() -> Result {
        let _provider = Fake::register()?;
        let offers = hints()?.getinfo()?;
        let endpoint = Endpoint::open(&domain()?, offers.first())?;
        let ep = endpoint.as_raw();
        let (null, bytes) = (ptr::null_mut(), ptr::null());
        let nosys = Errno::ENOSYS.to_c();
        let long = Some(crate::support::num::signed_size(nosys));
        // SAFETY: The endpoint is open. Its operations ignore the other arguments.
        unsafe {
            let (ops, msg, rma, cm) = (*(*ep).ops, *(*ep).msg, *(*ep).rma, *(*ep).cm);
            let (tagged, atomic) = (*(*ep).tagged, *(*ep).atomic);
            assert!(ops.cancel.map(|op| op(ep.cast(), null)) == long);
            assert!(msg.send.map(|op| op(ep, bytes, 1, null, 0, null)) == long);
            assert!(rma.write.map(|op| op(ep, bytes, 1, null, 0, 0, 0, null)) == long);
            assert!(tagged.send.map(|op| op(ep, bytes, 1, null, 0, 0, null)) == long);
            assert!(atomic.writemsg.map(|op| op(ep, ptr::null(), 0)) == long);
            let valid = atomic.writevalid;
            assert!(valid.map(|op| op(ep, 0, 0, ptr::null_mut())) == Some(nosys));
            assert!(cm.shutdown.map(|op| op(ep, 0)) == Some(nosys));
            let fid = *(*ep).fid.ops;
            assert!(fid.bind.map(|op| op(ep.cast(), ep.cast(), 0)) == Some(nosys));
            let nothing = fid.bind.map(|op| op(ep.cast(), ptr::null_mut(), 0));
            assert!(nothing == Some(Errno::EINVAL.to_c()));
            assert!(fid.control.map(|op| op(ep.cast(), -1, null)) == Some(nosys));
        }
        Ok(endpoint.close()?)
    }

    #[test]
    fn regions_are_found_by_their_descriptors() -> Result {
        let (_provider, domain) = Fake::open()?;
        let mr = domain.reg(bytes(0, 100)?, Access::SEND | Access::READ)?;
        // SAFETY: The region is open.
        let desc = unsafe { (*mr.as_raw()).mem_desc }.addr();
        let find = |desc| {
            // SAFETY: The domain is open.
            let object = unsafe { DomainObject::from_fid(domain.as_raw().cast()) };
            object.ok().and_then(|domain| domain.descs.find(desc))
        };
        let found = find(desc).ok_or(EINVAL)?;
        assert_eq!((found.base, found.len), (mr.base(), 100));
        assert_eq!(found.access, Access::SEND | Access::READ);
        assert!(found.whole && found.start.is_some());
        assert_eq!(find(desc + 1), None);
        assert_eq!(find(0), None);
        mr.close()?;
        assert_eq!(find(desc), None);
        Ok(Domain::close(domain)?)
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_eq)]
mod tests_of_eq {
    use super::*;

    fn options(size: usize) -> EventQueueOptions {
        EventQueueOptions::default().size(size).waits().writable()
    }

    /// Opens a queue. Also returns the reference that an object bound to the queue has.
    fn open(size: usize) -> Result<(Registered, Arc<EventQueue>, Arc<EqCore>)> {
        let provider = Fake::register()?;
        let queue = EventQueue::open(&fabric()?, options(size))?;
        // SAFETY: The queue is open, because there is a reference to it.
        let object = unsafe { EqObject::from_fid(queue.as_raw().cast()) }?;
        let core = EqBody::bound(object)?;
        Ok((provider, queue, core))
    }

    fn entry(object: usize) -> Entry {
        Entry {
            object,
            context: object + 1,
            data: 7,
        }
    }

    fn complete(core: &Arc<EqCore>, object: usize) -> Option<Unread> {
        let context = addr(object + 1);
        core.complete(kfi_bindings::KFI_MR_COMPLETE, addr(object), context, 7)
    }

    fn fail(core: &Arc<EqCore>, object: usize) -> Option<Unread> {
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
        let (_provider, queue, core) = open(4)?;
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
        let (_provider, queue, core) = open(2)?;
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
        let (_provider, queue, core) = open(8)?;
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
        let (_provider, queue, bound) = open(2)?;
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
        let (_provider, queue, _) = open(8)?;
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
