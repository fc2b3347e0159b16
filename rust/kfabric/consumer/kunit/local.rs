// SPDX-License-Identifier: GPL-2.0

//! Unit tests of finding regions by their descriptors.

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
        object::domain::DomainObject, //
    };
    use kernel::prelude::*;

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
            object.ok().and_then(|domain| domain.descs().find(desc))
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
