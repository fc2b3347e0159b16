// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the arithmetic of regions.

#[kernel::macros::kunit_tests(kfabric_shape)]
mod tests {
    use crate::region::shape::*;

    const PAGE: u64 = widen(PAGE_SIZE);

    fn shape(segments: &[(u64, u64)]) -> Result<Shape, Errno> {
        let mut sum = Sum::default();
        for &(start, len) in segments {
            sum.push(Some(start), len).map_err(|e| e.errno())?;
        }
        Ok(*sum.shape())
    }

    fn counts(segments: &[(u64, u64)]) -> Option<(u64, u64, Option<usize>)> {
        let shape = shape(segments).ok()?;
        Some((shape.bytes(), shape.pages(), shape.gap()))
    }

    #[test]
    fn single_segments() {
        assert_eq!(counts(&[(0x10000, 1)]), Some((1, 1, None)));
        assert_eq!(counts(&[(0x10000, PAGE)]), Some((PAGE, 1, None)));
        assert_eq!(counts(&[(0x10000, PAGE + 1)]), Some((PAGE + 1, 2, None)));
        assert_eq!(counts(&[(0x10fff, 2)]), Some((2, 2, None)));
        assert_eq!(counts(&[(0x10001, PAGE)]), Some((PAGE, 2, None)));
    }

    #[test]
    fn a_list_of_one_is_counted_as_any() {
        for (start, len) in [
            (0x10000, 1),
            (0x10fff, 2),
            (0x10001, PAGE),
            (0, 3),
            (7, 0),
            (u64::MAX, 2),
        ] {
            for start in [Some(start), None] {
                let mut any = Sum::default();
                let pushed = any.push(start, len).map(|()| *any.shape());
                assert_eq!(Shape::of_one(start, len), pushed);
            }
        }
    }

    #[test]
    fn aligned_joints_are_no_gaps() {
        let list = [(0x10800, PAGE - 0x800), (0x40000, PAGE), (0x80000, 7)];
        assert_eq!(counts(&list), Some((2 * PAGE - 0x800 + 7, 3, None)));
    }

    #[test]
    fn adjacent_segments_share_their_page() {
        let list = [(0x10000, 100), (0x10064, 100), (0x100c8, PAGE)];
        assert_eq!(counts(&list), Some((PAGE + 200, 2, None)));
    }

    #[test]
    fn gaps_are_found_at_the_first_one() {
        assert_eq!(
            shape(&[(0x10000, 100), (0x20000, 1)]).map(|s| s.gap()),
            Ok(Some(1))
        );
        assert_eq!(
            shape(&[(0x10000, PAGE), (0x20001, 1)]).map(|s| s.gap()),
            Ok(Some(1))
        );
        let list = [(0x10000, PAGE), (0x20000, 5), (0x30000, 5), (0x40000, 5)];
        assert_eq!(shape(&list).map(|s| s.gap()), Ok(Some(2)));
    }

    #[test]
    fn backwards_is_not_adjacent() {
        assert_eq!(
            shape(&[(0x20064, 100), (0x20000, 100)]).map(|s| s.gap()),
            Ok(Some(1))
        );
    }

    #[test]
    fn refused_arithmetic() {
        assert_eq!(shape(&[(0x10000, 0)]), Err(Errno::EINVAL));
        assert_eq!(shape(&[(u64::MAX, 1)]), Err(Errno::EINVAL));
        assert_eq!(shape(&[(0, u64::MAX), (0, 1)]), Err(Errno::EINVAL));
        let mut unknown = Sum::default();
        assert!(unknown.push(None, PAGE).is_ok());
        assert!(unknown.push(None, u64::MAX).is_err());
    }

    #[test]
    fn unknown_addresses_join_with_anything() {
        let mut sum = Sum::default();
        assert!(sum.push(Some(0x10000), 100).is_ok());
        assert!(sum.push(None, 100).is_ok());
        assert!(sum.push(Some(0x20005), 100).is_ok());
        assert_eq!(sum.shape().gap(), None);
        assert_eq!(sum.shape().segments(), 3);
    }
}
