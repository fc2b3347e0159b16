// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the addresses of a region.

#[kernel::macros::kunit_tests(kfabric_mr_ranges)]
mod tests {
    use crate::object::mr::ranges::*;

    fn at(base: usize, len: usize) -> kvec {
        kvec {
            iov_base: core::ptr::without_provenance_mut(base),
            iov_len: len,
        }
    }

    fn contained(ranges: &Ranges, part: kvec) -> bool {
        match &Source::kvecs(slice::from_ref(&part)) {
            Source::Kvec(list) => ranges.contain(list).is_ok(),
            _ => false,
        }
    }

    #[test]
    fn parts_lie_within_one_range() -> Result {
        let list = [at(0x1000, 0x100), at(0x5000, 0x2000)];
        let mut ranges = Ranges::Unknown;
        ranges.set(&Source::kvecs(&list))?;
        for good in [at(0x1000, 0x100), at(0x10ff, 1), at(0x5001, 0x1fff)] {
            assert!(contained(&ranges, good));
        }
        for bad in [
            at(0xfff, 2),
            at(0x10ff, 2),
            at(0x4fff, 1),
            at(0x5000, 0x2001),
            at(0x1000, 0),
            at(usize::MAX, 2),
        ] {
            assert!(!contained(&ranges, bad));
        }
        Ok(())
    }

    #[test]
    fn one_buffer_needs_no_list() -> Result {
        let list = [at(0x1000, 1)];
        let mut ranges = Ranges::Unknown;
        ranges.set(&Source::kvecs(&list))?;
        assert!(matches!(ranges, Ranges::One(_)));
        assert!(ranges.as_slice().len() == 1 && contained(&ranges, at(0x1000, 1)));
        assert!(!contained(&Ranges::Unknown, at(0x1000, 1)));
        Ok(())
    }

    #[test]
    fn room_is_kept() -> Result {
        let list = [at(0x1000, 1), at(0x2000, 1)];
        let mut ranges = Ranges::with_capacity(2)?;
        for n in [2, 1, 2] {
            ranges.set(&Source::kvecs(list.get(..n).ok_or(EINVAL)?))?;
            assert_eq!(ranges.as_slice().len(), n);
            assert!(matches!(&ranges, Ranges::Many(room) if room.capacity() >= 2));
        }
        Ok(())
    }
}
