// SPDX-License-Identifier: GPL-2.0

//! Unit tests of many regions at once: registered by one call, or asynchronously.

#[kernel::macros::kunit_tests(kfabric_consumer_batch)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                domain,
                hints,
                Fake,
                FAILS,
                HOLD,
                HOLDS,
                OPEN,
                STUCK,
                TOGETHER,
                UNABLE, //
            },
            *, //
        },
        object::mr::many::MAX_TOGETHER as MOST,
        prelude::*, //
    };
    use kernel::time::{
        delay::fsleep,
        Delta, //
    };

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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
        let _provider = Fake::register()?;
        let domain = domain()?;
        // A buffer in static memory, because the test leaks it.
        struct Probe(u8);
        static BYTES: [u8; 16] = [0; 16];
        // SAFETY: The bytes are static. Neither the test nor a device writes them.
        unsafe impl Buffer for Probe {
            fn start(&self) -> core::ptr::NonNull<u8> {
                core::ptr::NonNull::from(&BYTES).cast()
            }

            fn size(&self) -> usize {
                usize::from(self.0)
            }
        }
        let mut probes = KVVec::new();
        for size in [1, 2, 0, 3] {
            probes.push(Probe(size), GFP_KERNEL)?;
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

    fn fabric() -> Result<Arc<Fabric>, Errno> {
        Fabric::open(hints()?.getinfo()?.first())
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
