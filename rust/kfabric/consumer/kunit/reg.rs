// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the consumer API, over the provider in `fake.rs`.

#[kernel::macros::kunit_tests(kfabric_consumer)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                domain,
                hints,
                Fake,
                MAPPED,
                OPEN, //
            },
            register::registered,
            *, //
        },
        prelude::*, //
    };
    use core::ptr;
    use kernel::page::PAGE_SIZE;

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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
        let _provider = Fake::register()?;
        let domain = domain()?;
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
