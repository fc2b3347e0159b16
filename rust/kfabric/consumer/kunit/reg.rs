// SPDX-License-Identifier: GPL-2.0

//! Unit tests of regions: one or many at once, and raw keys.

use super::*;
use crate::{
    consumer::register::registered,
    object::mr::MAX_TOGETHER as MOST,
    region::rawkey, //
};
use kernel::{
    page::PAGE_SIZE,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

#[kernel::macros::kunit_tests(kfabric_consumer)]
mod tests {
    use super::*;

    #[test]
    fn hints_choose_offers() -> Result {
        let _provider = Fake::register()?;
        let offers = hints()?.getinfo()?;
        assert!(offers.iter().count() == 2);
        assert!(offers.first().prov_name() == c"kfabric_kunit");
        assert!(offers.first().mr_mode().has(MrMode::PROV_KEY));
        let offers = hints()?
            .domain_name(c"first")?
            .domain_name(c"second")?
            .getinfo()?;
        assert!(offers.iter().count() == 1);
        assert!(offers.first().domain_name() == c"second");
        let refused = |hints: Hints| hints.getinfo().err() == Some(Errno::ENODATA);
        assert!(refused(hints()?.domain_name(c"third")?));
        assert!(refused(hints()?.mr_mode(MrMode::PROV_KEY)));
        assert!(refused(hints()?.caps(Caps::TAGGED)));
        assert!(refused(hints()?.mr_iov_limit(5)));
        Ok(())
    }

    #[test]
    fn all_is_closed_after_the_last_region() -> Result {
        let (_provider, domain) = Fake::open()?;
        let first = domain.reg(bytes(0, 10)?, access())?;
        let second = domain.reg(bytes(0, 10)?, access())?;
        let fabric = domain.fabric().clone();
        assert!(OPEN.load(Relaxed) == 3);
        // Others have references to both.
        assert!(Fabric::close(fabric).err().map(|e| e.errno()) == Some(Errno::EBUSY));
        assert!(Domain::close(domain).err().map(|e| e.errno()) == Some(Errno::EBUSY));
        drop(first);
        assert!(OPEN.load(Relaxed) == 2);
        second.close()?;
        assert!(OPEN.load(Relaxed) == 0);
        Ok(())
    }

    #[test]
    fn each_call_passes_its_list() -> Result {
        let (_provider, domain) = Fake::open()?;
        let (kvec, bvec, sgl) = (1 << 32, 2 << 32, 3 << 32);
        let options = Options::new(access()).requested_key(7).flags(1);

        let mr = domain.reg(bytes(0, 10)?, options)?;
        assert!((mr.base(), mr.key(), mr.len()) == (kvec | 10, 7, 10));
        let segments = Segments::new(kernel::kvec![bytes(0, 10)?, bytes(0, 20)?]?);
        let mr = domain.regv(segments, options)?;
        assert!((mr.base(), mr.key(), mr.len()) == (kvec | 30, 7, 30));
        let mr = domain.regbv(Pages::zeroed_at(5, PAGE_SIZE)?, options)?;
        assert!((mr.base(), mr.len()) == (bvec | crate::support::num::widen(PAGE_SIZE), PAGE_SIZE));
        let mr = domain.regattr(mr.close()?, options, Some(b"secret"))?;
        assert!(mr.base() == bvec | crate::support::num::widen(PAGE_SIZE));
        // SAFETY: The region is open.
        let desc = unsafe { (*mr.as_raw()).mem_desc }.addr();
        assert!(desc == 2 << 16 | 6);
        let list = MappedList::map(&domain, Pages::zeroed(9)?, access())?;
        let mr = domain.regsgl(list, options)?;
        assert!((mr.base(), mr.key(), mr.len()) == (sgl | 9, 7, 9));
        Ok(())
    }

    #[test]
    fn refused_memory_comes_back() -> Result {
        let (_provider, domain) = Fake::open()?;
        let refused = domain.reg(bytes(3, 10)?, Options::new(access()).flags(2));
        let Err(error) = refused else {
            return Err(EINVAL);
        };
        assert!(error.errno() == Errno::EBADFLAGS);
        assert!(error.into_inner() == Some(bytes(3, 10)?));
        let refused = domain.reg(KVec::new(), access()).err();
        assert!(refused.map(|e| e.errno()) == Some(Errno::EINVAL));
        Ok(())
    }

    #[test]
    fn memory_does_not_come_back_without_a_region() -> Result {
        let _provider = Fake::register()?;
        // The provider returns success without a region. The memory is leaked on purpose.
        let buffer = bytes(3, 10)?;
        // SAFETY: The vector isn't empty, so its pointer is an allocation.
        unsafe { kfi_bindings::kfi_helper_not_leak(buffer.as_ptr().cast()) };
        let opened = Mr::open(&domain()?, buffer, access(), |_| {
            registered(0, ptr::null_mut())
        });
        let Err(error) = opened else {
            return Err(EINVAL);
        };
        assert!(error.errno() == Errno::ENOTRECOVERABLE);
        assert!(error.into_inner().is_none());
        // A failed call has no region.
        let failed = registered(Errno::ENOMEM.to_c(), ptr::null_mut());
        assert!(failed == Err(Errno::ENOMEM));
        Ok(())
    }

    #[test]
    fn bytes_are_reached_across_segments() -> Result {
        let _provider = Fake::register()?;
        let segments = Segments::new(kernel::kvec![bytes(0, 10)?, bytes(10, 1)?, bytes(11, 20)?]?);
        let mut mr = domain()?.regv(segments, access())?;
        assert!(mr.compare(0, &bytes(0, 31)?)?.is_none());
        assert!(mr.compare(8, &bytes(8, 10)?)?.is_none());
        mr.write(9, b"abc")?;
        assert!(mr.compare(0, &bytes(0, 31)?)? == Some(9));
        let mut out = [0; 5];
        mr.read(8, &mut out)?;
        assert!(&out == b"\x08abc\x0c");
        assert!(mr.read(27, &mut out) == Err(Errno::EINVAL));
        assert!(mr.write(usize::MAX, b"x") == Err(Errno::EINVAL));
        assert!(mr.write(31, b"") == Ok(()));
        mr.fill(0xee)?;
        let buffers = mr.close()?.into_inner();
        assert!(buffers
            .iter()
            .all(|buffer| buffer.iter().all(|byte| *byte == 0xee)));
        Ok(())
    }

    #[test]
    fn mappings_are_for_their_domain_and_rights() -> Result {
        let _provider = Fake::register()?;
        let (one, other) = (domain()?, domain()?);
        let map =
            |access| -> Result<_, Errno> { Ok(MappedList::map(&one, Pages::zeroed(10)?, access)?) };
        let refused = |mr: Result<Mr<MappedList>, RegisterError<MappedList>>| {
            mr.err().map(|error| error.errno()) == Some(Errno::EINVAL)
        };
        assert!(refused(other.regsgl(map(access())?, access())));
        assert!(refused(
            one.regsgl(map(Access::REMOTE_READ)?, Access::REMOTE_WRITE)
        ));
        assert!(refused(one.regattr(map(Access::SEND)?, Access::RECV, None)));
        let list = map(access())?;
        assert!(MAPPED.load(Relaxed) == 1);
        assert!(list.unmap().len() == 10);
        assert!(MAPPED.load(Relaxed) == 0);
        Ok(())
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_batch)]
mod tests_of_batch {
    use super::*;

    fn buffers(count: u8) -> Result<KVVec<KVec<u8>>> {
        let mut buffers = KVVec::new();
        for first in 0..count {
            buffers.push(bytes(first, 10)?, GFP_KERNEL)?;
        }
        Ok(buffers)
    }

    fn refused(
        domain: &Arc<Domain>,
        buffers: KVVec<KVec<u8>>,
    ) -> Result<RegisterManyError<KVec<u8>>> {
        domain.reg_many(buffers, access()).err().ok_or(EINVAL)
    }

    #[test]
    fn each_buffer_has_its_region() -> Result {
        let (_provider, domain) = Fake::open()?;
        TOGETHER.store(0, Relaxed);
        let mut mrs = domain.reg_many(buffers(5)?, Options::new(access()).requested_key(7))?;
        assert_eq!(
            (mrs.len(), TOGETHER.load(Relaxed), OPEN.load(Relaxed)),
            (5, 5, 6)
        );
        for (mr, first) in mrs.iter_mut().zip(0..) {
            assert_eq!((mr.len(), mr.key()), (10, 7));
            assert!(mr.compare(0, &bytes(first, 10)?)?.is_none());
            mr.write(0, b"x")?;
        }
        let mut firsts = KVec::new();
        Mr::close_many(mrs, |closed| {
            let two = |bytes: KVec<u8>| Some((*bytes.first()?, *bytes.get(1)?));
            let _ = firsts.push(closed.ok().and_then(two), GFP_KERNEL);
        });
        let expected = (1..6).map(|second| Some((b'x', second)));
        assert!(firsts.into_iter().eq(expected));
        assert!(domain
            .reg_many(KVVec::<KVec<u8>>::new(), access())?
            .is_empty());
        Mr::close_many(KVVec::<Mr<KVec<u8>>>::new(), |_| ());
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn of_several_domains_each_is_closed_by_itself() -> Result {
        let _provider = Fake::register()?;
        let mut mrs = domain()?.reg_many(buffers(2)?, access())?;
        mrs.push(domain()?.reg(bytes(2, 10)?, access())?, GFP_KERNEL)?;
        let mut next = 0;
        Mr::close_many(mrs, |closed| {
            assert!(closed.ok() == bytes(next, 10).ok());
            next += 1;
        });
        assert_eq!((next, OPEN.load(Relaxed)), (3, 0));
        Ok(())
    }

    #[test]
    fn all_or_none() -> Result {
        let (_provider, domain) = Fake::open()?;
        let mut with_empty = buffers(3)?;
        with_empty.push(KVec::new(), GFP_KERNEL)?;
        let error = refused(&domain, with_empty)?;
        assert_eq!((error.errno(), error.index()), (Errno::EINVAL, Some(3)));
        assert_eq!(OPEN.load(Relaxed), 1);
        let mut back = error.into_inner();
        assert!(back.pop().is_some_and(|last| last.is_empty()));
        assert!(back.into_iter().eq(buffers(3)?));

        UNABLE.store(true, Relaxed);
        let error = refused(&domain, buffers(2)?)?;
        assert_eq!((error.errno(), error.index()), (Errno::ENODEV, Some(0)));
        assert_eq!((error.into_inner().len(), OPEN.load(Relaxed)), (2, 1));
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn what_can_still_be_reached_does_not_come_back() -> Result {
        let (_provider, domain) = Fake::open()?;
        let mut probes = KVVec::new();
        for size in [1, 2, 0, 3] {
            probes.push(StaticBuffer(size), GFP_KERNEL)?;
        }
        // Closing the first region fails.
        STUCK.store(true, Relaxed);
        let Err(error) = domain.reg_many(probes, access()) else {
            return Err(EINVAL);
        };
        assert_eq!((error.errno(), error.index()), (Errno::EINVAL, Some(2)));
        let back = error.into_inner().into_iter().map(|probe| probe.0);
        assert!(back.eq([2, 0, 3]));
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn regions_that_come_meanwhile_are_registered_together() -> Result {
        const REGIONS: usize = MOST + 6;
        let _provider = Fake::register()?;
        let fabric = fabric()?;
        let domain = Domain::open(&fabric, hints()?.getinfo()?.first())?;
        let queue = EventQueue::open(
            &fabric,
            EventQueueOptions::default().size(2 * REGIONS).waits(),
        )?;
        domain.bind(&queue)?;

        // Holds the registration of the first one while the others are added.
        HOLD.store(true, Relaxed);
        let mut mrs = KVec::with_capacity(REGIONS + 1, GFP_KERNEL)?;
        for context in 0..=REGIONS {
            let key = match context {
                0 => HOLDS,
                3 => FAILS,
                _ => 0,
            };
            let options = Options::new(access()).requested_key(key).context(context);
            mrs.push(domain.reg(bytes(0, 10)?, options)?, GFP_KERNEL)?;
            if context == 0 {
                // Until the workqueue has started with it alone.
                fsleep(Delta::from_millis(100));
            }
        }
        TOGETHER.store(0, Relaxed);
        HOLD.store(false, Relaxed);

        // Each is reported, the successful ones in order. Failures may be reported earlier.
        let mut failures = 0;
        let mut next = 0;
        while next <= REGIONS {
            match queue.events().wait(None)? {
                Some(Next::Event(Event::MrComplete(entry))) => {
                    next += usize::from(next == 3);
                    assert_eq!(entry.context, next);
                    next += 1;
                }
                Some(Next::Failed(failure)) => {
                    assert_eq!((failure.context, failure.errno), (3, Errno::ENODEV));
                    failures += 1;
                }
                _ => return Err(EIO),
            }
        }
        assert_eq!((failures, queue.events().read()?), (1, None));
        // The last call had the rest, because the previous one was full.
        assert_eq!(TOGETHER.load(Relaxed), REGIONS - MOST);
        for (context, mr) in mrs.into_iter().enumerate() {
            let has_key = mr.key() != u64::MAX;
            assert!(has_key == (context != 3));
            assert!(mr.close()? == bytes(0, 10)?);
        }
        EventQueue::close(queue).err();
        Ok(Domain::close(domain)?)
    }

    #[test]
    fn regions_are_closed_while_they_wait_for_others() -> Result {
        let _provider = Fake::register()?;
        let fabric = fabric()?;
        let domain = Domain::open(&fabric, hints()?.getinfo()?.first())?;
        let queue = EventQueue::open(&fabric, EventQueueOptions::default().size(16))?;
        domain.bind(&queue)?;
        for _ in 0..20 {
            let mut mrs = KVec::with_capacity(8, GFP_KERNEL)?;
            for _ in 0..8 {
                mrs.push(domain.reg(bytes(0, 10)?, access())?, GFP_KERNEL)?;
            }
            for mr in mrs {
                assert!(mr.close()? == bytes(0, 10)?);
            }
            assert_eq!(queue.events().read()?, None);
        }
        // The workqueue has none of the last regions.
        EventQueue::close(queue).err();
        Ok(Domain::close(domain)?)
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_raw)]
mod tests_of_raw {
    use super::*;

    const fn piece(key: u64, base: u64, len: u64) -> RemotePiece {
        RemotePiece { key, base, len }
    }

    #[test]
    fn a_region_is_found_behind_its_raw_key() -> Result {
        let _provider = Fake::register()?;
        let mr = domain()?.reg(bytes(0, 10)?, Options::new(access()).requested_key(7))?;
        let raw = mr.raw_key()?;
        assert!(raw.base() == mr.base() && raw.as_bytes().len() == 48);
        let peer = domain()?;
        let mapped = peer.map_raw(raw.base(), raw.as_bytes())?;
        assert!(mapped.key() & rawkey::MAPPED != 0);
        let parts = mapped.resolve(raw.base() + 2, 8)?;
        assert!(parts.as_slice() == [piece(7, mr.base() + 2, 8)]);
        let refused = |addr, len| mapped.resolve(addr, len).err() == Some(Errno::EINVAL);
        assert!(refused(raw.base(), 11) && refused(raw.base(), 0) && refused(raw.base() - 1, 1));
        Ok(())
    }

    #[test]
    fn a_region_of_two_has_a_longer_raw_key() -> Result {
        let (_provider, domain) = Fake::open()?;
        let mr = domain.reg(bytes(0, 10)?, Options::new(access()).requested_key(IN_TWO))?;
        let raw = mr.raw_key()?;
        assert!(raw.as_bytes().len() == 72);
        let mapped = domain.map_raw(100, raw.as_bytes())?;
        let whole = mapped.resolve(100, 10)?;
        let [first, second] = [piece(IN_TWO, 0x1000, 4), piece(IN_TWO + 1, 0x8000, 6)];
        assert!(whole.as_slice() == [first, second]);
        let second = mapped.resolve(105, 5)?;
        assert!(second.as_slice() == [piece(IN_TWO + 1, 0x8001, 5)]);
        Ok(())
    }

    #[test]
    fn mapped_keys_keep_their_domain_open() -> Result {
        let _provider = Fake::register()?;
        let (one, other) = (domain()?, domain()?);
        let raw = one.reg(bytes(0, 10)?, access())?.raw_key()?;
        let mapped = other.map_raw(0, raw.as_bytes())?;
        assert!(Domain::close(other).err().map(|e| e.errno()) == Some(Errno::EBUSY));
        // The mapped key keeps the domain open. The key isn't told that the region is closed.
        assert!(mapped.resolve(9, 1)?.len() == 1);
        let other = mapped.domain().clone();
        drop(mapped);
        Domain::close(other)?;
        Ok(())
    }

    #[test]
    fn malformed_raw_keys_are_refused() -> Result {
        let (_provider, domain) = Fake::open()?;
        let raw = domain.reg(bytes(0, 10)?, access())?.raw_key()?;
        let refused = |raw: &[u8]| domain.map_raw(0, raw).err() == Some(Errno::EINVAL);
        assert!(refused(&[]) && refused(&[0; 48]) && refused(&[0; 200]));
        assert!(domain.map_raw(u64::MAX, raw.as_bytes()).is_err());
        assert!(domain.map_raw(0, raw.as_bytes()).is_ok());
        let cut_off = raw.as_bytes().split_last().ok_or(EINVAL)?.1;
        assert!(refused(cut_off));
        Ok(())
    }
}
