// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the addresses of a region.

#[kernel::macros::kunit_tests(kfabric_mr_ranges)]
mod tests {
    use crate::{
        object::mr::ranges::*,
        region::access::Access, //
    };
    use core::slice;
    use kernel::prelude::*;

    fn at(base: usize, len: usize) -> kvec {
        kvec {
            iov_base: without_provenance_mut(base),
            iov_len: len,
        }
    }

    fn contained(ranges: &[kvec], part: kvec) -> bool {
        match &Source::kvecs(slice::from_ref(&part)) {
            Source::Kvec(list) => contain(ranges, list).is_ok(),
            _ => false,
        }
    }

    #[test]
    fn parts_lie_within_one_range() {
        let list = [at(0x1000, 0x100), at(0x5000, 0x2000)];
        for good in [at(0x1000, 0x100), at(0x10ff, 1), at(0x5001, 0x1fff)] {
            assert!(contained(&list, good));
        }
        for bad in [
            at(0xfff, 2),
            at(0x10ff, 2),
            at(0x4fff, 1),
            at(0x5000, 0x2001),
            at(0x1000, 0),
            at(usize::MAX, 2),
        ] {
            assert!(!contained(&list, bad));
        }
        assert!(!contained(&[], at(0x1000, 1)));
    }

    #[test]
    fn one_range_needs_no_list() -> Result {
        let region = DescEntry::new(0x1000, 0x100, Access::SEND);
        let range = one(&region).ok_or(EINVAL)?;
        assert!(contained(&[range], at(0x1000, 0x100)));
        assert!(!contained(&[range], at(0x1000, 0x101)) && !contained(&[range], at(0xfff, 1)));
        assert!(one(&DescEntry::new(0, 0x100, Access::SEND)).is_none());
        Ok(())
    }
}
