// SPDX-License-Identifier: GPL-2.0

//! Unit tests of counters, endpoints and descriptors of regions.

#[kernel::macros::kunit_tests(kfabric_consumer_objects)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                bytes,
                domain,
                hints,
                Fake,
                OPEN, //
            },
            *, //
        },
        object::{
            cntr::CounterObject,
            domain::DomainObject,
            ep, //
        },
        prelude::*, //
    };
    use core::ptr;
    use kfi_bindings::{
        kfi_ep_attr,
        kfi_info,
        kfid_domain,
        kfid_ep, //
    };

    #[test]
    fn counters_count() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
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
            object.counter().clone()
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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
