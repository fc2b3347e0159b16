// SPDX-License-Identifier: GPL-2.0

//! Unit tests of rings.

#[kernel::macros::kunit_tests(kfabric_eq_ring)]
mod tests {
    use crate::{
        object::eq::ring::*,
        support::num::index, //
    };

    /// Reads everything; `None` stands for what was lost.
    fn drain(ring: &mut EqRing<u32>) -> Result<KVec<Option<u32>>> {
        let mut all = KVec::new();
        loop {
            match ring.first() {
                First::Nothing => return Ok(all),
                First::Lost => all.push(None, GFP_KERNEL)?,
                First::Entry(entry) => all.push(Some(*entry), GFP_KERNEL)?,
            }
            ring.advance();
        }
    }

    #[test]
    fn in_order_and_round_and_round() -> Result {
        let mut ring = EqRing::new(3)?;
        for start in 0..10 {
            ring.push(start);
            ring.push(start + 1);
            assert!(!ring.is_empty());
            assert_eq!(&*drain(&mut ring)?, &[Some(start), Some(start + 1)]);
            assert!(ring.is_empty());
        }
        Ok(())
    }

    #[test]
    fn what_is_lost_is_told_where_it_was() -> Result {
        let mut ring = EqRing::new(2)?;
        for entry in 1..=4 {
            ring.push(entry);
        }
        ring.advance();
        ring.push(5);
        ring.push(6);
        let all = [Some(2), None, Some(5), None];
        assert_eq!(&*drain(&mut ring)?, &all);
        ring.push(7);
        assert_eq!(&*drain(&mut ring)?, &[Some(7)]);
        Ok(())
    }

    #[test]
    fn a_refused_entry_is_not_lost() -> Result {
        let mut ring = EqRing::new(1)?;
        assert!(ring.try_push(1).is_some());
        assert!(ring.try_push(2).is_none());
        assert_eq!(&*drain(&mut ring)?, &[Some(1)]);
        Ok(())
    }

    #[test]
    fn removal_keeps_the_order_and_makes_room() -> Result {
        let mut ring = EqRing::new(4)?;
        for entry in 0..3 {
            ring.push(entry);
            ring.advance();
        }
        let mut places = KVec::new();
        for entry in 1..=5 {
            places.push(ring.push(entry), GFP_KERNEL)?;
        }
        for place in places.iter().skip(1).step_by(2).flatten() {
            ring.remove(*place);
        }
        ring.push(6);
        ring.push(7);
        ring.push(8);
        let all = [Some(1), Some(3), None, Some(6), Some(7), None];
        assert_eq!(&*drain(&mut ring)?, &all);
        Ok(())
    }

    #[test]
    fn removal_never_hides_a_loss() -> Result {
        let mut ring = EqRing::new(1)?;
        let place = ring.push(1).ok_or(EINVAL)?;
        ring.push(2);
        ring.remove(place);
        assert!(!ring.is_empty());
        ring.push(3);
        assert_eq!(&*drain(&mut ring)?, &[None, Some(3)]);
        Ok(())
    }

    #[test]
    fn what_was_read_is_not_removed_again() -> Result {
        let mut ring = EqRing::new(2)?;
        let place = ring.push(1).ok_or(EINVAL)?;
        ring.advance();
        ring.remove(place);
        // In the slot of the first one.
        ring.push(2);
        ring.push(3);
        ring.remove(place);
        assert_eq!(&*drain(&mut ring)?, &[Some(2), Some(3)]);
        ring.remove(place);
        assert!(ring.is_empty());
        Ok(())
    }

    #[test]
    fn removal_takes_no_longer_with_many() -> Result {
        const MANY: u32 = 1 << 13;
        let mut ring = EqRing::new(index(MANY))?;
        let mut places = KVVec::new();
        for entry in 0..MANY {
            places.push(ring.push(entry).ok_or(EINVAL)?, GFP_KERNEL)?;
        }
        // From both ends to the middle: neither is a short cut.
        let before = ring.looked_at;
        while let Some(last) = places.pop() {
            ring.remove(last);
            if let Some(middle) = places.get(places.len() / 2) {
                ring.remove(*middle);
            }
        }
        assert!(ring.is_empty());
        assert!(ring.looked_at - before <= 8 * index(MANY));
        Ok(())
    }
}
