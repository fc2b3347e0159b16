// SPDX-License-Identifier: GPL-2.0

//! Unit tests of looking regions up by their descriptors.

#[kernel::macros::kunit_tests(kfabric_descs)]
mod tests {
    use crate::{
        object::descs::*,
        support::num::widen, //
    };

    fn base(desc: usize) -> u64 {
        widen(desc) << 32
    }

    fn insert(descs: &Descs, desc: usize) -> Result<KBox<DescEntry>> {
        let local = KBox::new(DescEntry::new(0, 100, Access::SEND), GFP_KERNEL)?;
        // SAFETY: New; the box stays where it is, and each test removes it.
        unsafe { descs.insert(&local, desc, base(desc), true) };
        Ok(local)
    }

    fn remove(descs: &Descs, local: &DescEntry) {
        // SAFETY: The test has inserted it in this table, if anywhere, and is alone.
        unsafe { descs.remove(local) };
    }

    fn is_found(descs: &Descs, desc: usize) -> bool {
        let expected = DescMr {
            start: None,
            base: base(desc),
            len: 100,
            access: Access::SEND,
            whole: true,
        };
        descs.find(desc) == Some(expected)
    }

    #[test]
    fn found_as_long_as_they_are_there() -> Result {
        // More than there are chains.
        const MANY: usize = 3 << (LOCKS_BITS + CHAINS_BITS);
        let descs = Descs::new()?;
        let mut all = KVVec::new();
        for desc in 1..=MANY {
            all.push(insert(&descs, desc)?, GFP_KERNEL)?;
        }
        assert!((1..=MANY).all(|desc| is_found(&descs, desc)));
        assert_eq!(descs.find(MANY + 1), None);
        for (index, local) in all.iter().enumerate() {
            if index % 3 != 0 {
                remove(&descs, local);
            }
        }
        // The remaining descriptors are 1 more than a multiple of 3.
        assert!((1..=MANY).all(|desc| is_found(&descs, desc) == (desc % 3 == 1)));
        for local in all.iter() {
            // Twice is no harm: it isn't there any more.
            remove(&descs, local);
            remove(&descs, local);
        }
        assert!((1..=MANY).all(|desc| descs.find(desc).is_none()));
        Ok(())
    }

    #[test]
    fn none_is_not_found() -> Result {
        let descs = Descs::new()?;
        let local = insert(&descs, 0)?;
        assert_eq!(descs.find(0), None);
        remove(&descs, &local);
        Ok(())
    }
}
