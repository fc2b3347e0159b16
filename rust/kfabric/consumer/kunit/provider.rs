// SPDX-License-Identifier: GPL-2.0

//! Unit tests of what a provider in safe Rust can't do to its consumers.

#[kernel::macros::kunit_tests(kfabric_consumer_provider)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                access,
                bytes,
                domain,
                Fake,
                KEEPS,
                KEEPS_AND_FAILS,
                KEPT,
                MAPPED,
                NO_DMA,
                OWN,
                TOO_MANY, //
            },
            *, //
        },
        object::ext::{
            dma,
            raw, //
        },
        prelude::*,
        region::cpu_memory::{
            CpuMemory,
            PeerBuffer, //
        }, //
    };
    use core::ptr;

    fn read(extent: &CpuMemory) -> Option<Errno> {
        let copied = extent.copy(0, PeerBuffer::read_slice(&mut [0]));
        copied.err().map(|refusal| refusal.errno())
    }

    #[test]
    fn memory_is_not_reached_after_the_close() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let options = Options::new(access());
        let mr = domain.reg(bytes(0, 10)?, options.requested_key(KEEPS))?;
        let kept = KEPT.take().ok_or(EINVAL)?;
        assert_eq!(read(&kept), None);
        mr.close()?;
        assert_eq!(read(&kept), Some(Errno::EACCES));

        let options = options.requested_key(KEEPS_AND_FAILS);
        let refused = domain.reg(bytes(0, 10)?, options).err().ok_or(EINVAL)?;
        assert_eq!(refused.errno(), Errno::ENOSPC);
        let kept = KEPT.take().ok_or(EINVAL)?;
        assert_eq!(read(&kept), Some(Errno::EACCES));
        Ok(())
    }

    #[test]
    fn names_of_the_core_are_the_core_s() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let own = domain.extension(c"kfabric_kunit_ops")?;
        assert!(ptr::eq(own.as_ptr().cast(), &raw const OWN));
        let is = |name, table| domain.extension(name).map(|found| found.as_ptr()) == Ok(table);
        assert!(is(dma::NAME, dma::OPS.as_ptr().cast()));
        assert!(is(raw::NAME, raw::OPS.as_ptr().cast()));
        NO_DMA.store(true, Relaxed);
        let found = domain.extension(dma::NAME).err();
        NO_DMA.store(false, Relaxed);
        assert_eq!(found, Some(Errno::ENOSYS));
        assert_eq!(domain.extension(c"none").err(), Some(Errno::ENOSYS));
        Ok(())
    }

    #[test]
    fn lists_are_not_longer_than_they_are() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        TOO_MANY.store(true, Relaxed);
        let refused = MappedList::map(&domain, Pages::zeroed(10)?, access()).err();
        assert_eq!(refused.map(|error| error.errno()), Some(Errno::EIO));
        // Nobody knows how many entries are mapped, so nobody unmaps them.
        assert_eq!(MAPPED.xchg(0, Relaxed), 1);
        Ok(())
    }
}
