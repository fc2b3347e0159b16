// SPDX-License-Identifier: GPL-2.0

//! Unit tests of checking parts of regions by their descriptors.

#[kernel::macros::kunit_tests(kfabric_local)]
mod tests {
    use crate::{
        consumer::{
            kunit::fake::{
                bytes,
                domain,
                Fake, //
            },
            *, //
        },
        object::mr::LocalSegment, //
    };
    use core::ptr;
    use kernel::prelude::*;

    #[test]
    fn segments_are_checked_against_their_region() -> Result {
        let _provider = Fake::register()?;
        let domain = domain()?;
        let mr = domain.reg(bytes(0, 100)?, Access::SEND | Access::READ)?;
        // SAFETY: The region is open.
        let desc = unsafe { (*mr.as_raw()).mem_desc };
        let parse = |desc, offset, len, needs| {
            // SAFETY: The domain is open.
            let parsed =
                unsafe { LocalSegment::parse(domain.as_raw().cast(), desc, offset, len, needs) };
            parsed.map_err(|refusal| refusal.errno())
        };
        let segment = parse(desc, 10, 90, Access::SEND)?;
        assert_eq!((segment.base(), segment.len()), (mr.base() + 10, 90));
        assert_eq!((segment.desc(), segment.pieces()), (desc.addr(), 1));
        assert!(parse(desc, 100, 0, Access::READ).is_ok_and(|segment| segment.is_empty()));
        let refused = |desc, offset, len, needs, errno| {
            assert_eq!(parse(desc, offset, len, needs), Err(errno));
        };
        refused(desc, 10, 91, Access::SEND, Errno::EINVAL);
        refused(desc, u64::MAX, 2, Access::SEND, Errno::EINVAL);
        refused(desc, 0, 1, Access::RECV, Errno::EACCES);
        refused(desc, 0, 1, Access::SEND | Access::WRITE, Errno::EACCES);
        refused(desc.wrapping_byte_add(1), 0, 1, Access::SEND, Errno::EINVAL);
        refused(ptr::null_mut(), 0, 1, Access::SEND, Errno::EINVAL);
        mr.close()?;
        refused(desc, 0, 1, Access::SEND, Errno::EINVAL);
        Ok(Domain::close(domain)?)
    }
}
