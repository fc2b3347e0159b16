// SPDX-License-Identifier: GPL-2.0

//! Unit tests of many regions in one go.

#[kernel::macros::kunit_tests(kfabric_consumer_many)]
mod tests {
    use crate::consumer::{
        kunit::fake::{
            access,
            bytes,
            domain,
            Fake,
            OPEN,
            STUCK,
            TOGETHER,
            UNABLE, //
        },
        *, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::Relaxed,
            Arc, //
        }, //
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
        // In static memory, which leaks nothing if it is leaked.
        struct Probe(u8);
        static BYTES: [u8; 16] = [0; 16];
        // SAFETY: Nobody writes to them here, nor does a device.
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
        // The first one that is to be closed again.
        STUCK.store(true, Relaxed);
        let Err(error) = domain.reg_many(probes, access()) else {
            return Err(EINVAL);
        };
        assert_eq!((error.errno(), error.index()), (Errno::EINVAL, Some(2)));
        let back = error.into_inner().into_iter().map(|probe| probe.0);
        assert!(back.eq([2, 0, 3]));
        Ok(Domain::close(domain)?)
    }
}
