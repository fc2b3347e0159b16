// SPDX-License-Identifier: GPL-2.0

//! Tests of what is kept ready.

#[kernel::macros::kunit_tests(kfi_verbs_lines)]
mod tests {
    use super::super::*;

    fn size(pages: u32) -> Result<Size> {
        Size::of(pages).ok_or(EINVAL)
    }

    fn put(lines: &mut Lines<u32>, pages: u32, items: core::ops::Range<u32>) -> Result<u32> {
        let mut kept = 0;
        for item in items {
            kept += u32::from(lines.put(size(pages)?, item).is_ok());
        }
        Ok(kept)
    }

    fn surplus(lines: &mut Lines<u32>) -> usize {
        lines.age();
        core::iter::from_fn(|| lines.surplus()).count()
    }

    #[test]
    fn first_come_first_served() -> Result {
        let mut lines = Lines::new(512, 100)?;
        assert_eq!(put(&mut lines, 1, 0..4)?, 4);
        for i in 0..100 {
            assert_eq!(lines.take(size(1)?), Some(i));
            assert_eq!(put(&mut lines, 1, i + 4..i + 5)?, 1);
        }
        Ok(())
    }

    #[test]
    fn either_kind_is_kept_by_itself() -> Result {
        let mut lines = Lines::new(512, 10_000)?;
        let large = Size::of_kind(rdma::mr::Kind::LargePages, 1).ok_or(EINVAL)?;
        for (here, there) in [(size(1)?, large), (large, size(1)?)] {
            assert!(lines.put(here, 1).is_ok());
            assert_eq!(lines.take(there), None);
            assert_eq!(lines.take_spare(there), None);
            assert_eq!(lines.take(here), Some(1));
        }
        Ok(())
    }

    #[test]
    fn who_comes_for_many_leaves_what_is_kept_ready() -> Result {
        let mut lines = Lines::new(512, 10_000)?;
        // Nobody has come for one yet.
        assert_eq!(put(&mut lines, 1, 0..2)?, 2);
        assert_eq!(lines.take_spare(size(1)?), Some(0));
        assert_eq!(lines.take_spare(size(1)?), Some(1));
        assert_eq!(lines.take_spare(size(1)?), None);
        assert_eq!(lines.short_of(), None);
        // Somebody has: the ready ones are left.
        assert_eq!(lines.take(size(1)?), None);
        assert_eq!(put(&mut lines, 1, 0..10)?, 10);
        assert_eq!(lines.take_spare(size(1)?), Some(0));
        assert_eq!(lines.take_spare(size(1)?), Some(1));
        assert_eq!(lines.take_spare(size(1)?), None);
        assert_eq!(lines.len(), 8);
        // Of large ones none is left.
        assert_eq!(lines.take(size(512)?), None);
        assert_eq!(put(&mut lines, 512, 0..1)?, 1);
        assert_eq!(lines.take_spare(size(512)?), Some(0));
        Ok(())
    }

    #[test]
    fn no_more_than_the_budget() -> Result {
        let mut lines = Lines::new(512, 20)?;
        assert_eq!(put(&mut lines, 16, 0..2)?, 1);
        assert_eq!(put(&mut lines, 1, 0..9)?, 4);
        assert_eq!((lines.len(), lines.pages()), (5, 20));
        assert_eq!(lines.take(size(16)?), Some(0));
        assert_eq!((lines.len(), lines.pages()), (4, 4));
        assert_eq!(put(&mut lines, 4, 0..9)?, 4);
        assert_eq!(put(&mut Lines::new(512, 0)?, 1, 0..2)?, 0);
        Ok(())
    }

    #[test]
    fn ahead_of_need_only_what_is_not_huge_and_wanted() -> Result {
        let mut lines = Lines::<u32>::new(1024, 4000)?;
        assert_eq!(lines.short_of(), None);
        let _ = lines.take(size(1024)?);
        assert!(lines.short_of().is_none() && !lines.is_low(size(1024)?));
        let _ = lines.take(size(512)?);
        assert!(lines.short_of() == Size::of(512) && lines.is_low(size(512)?));
        assert_eq!(put(&mut lines, 512, 0..4)?, 4);
        assert!(lines.short_of().is_none() && !lines.is_low(size(512)?));
        let _ = lines.take(size(8)?);
        assert!(lines.short_of() == Size::of(8) && lines.is_low(size(8)?));
        assert_eq!(put(&mut lines, 8, 0..8)?, 8);
        assert!(lines.short_of().is_none() && !lines.is_low(size(8)?));
        let mut poor = Lines::<u32>::new(512, 7)?;
        let _ = poor.take(size(8)?);
        assert_eq!(poor.short_of(), None);
        // Where there is room for one large one, that is for one that comes back.
        let mut poor = Lines::<u32>::new(512, 1023)?;
        let _ = poor.take(size(512)?);
        assert!(poor.short_of().is_none() && !poor.is_low(size(512)?));
        let mut rich = Lines::<u32>::new(512, 1024)?;
        let _ = rich.take(size(512)?);
        assert!(rich.short_of() == Size::of(512) && rich.is_low(size(512)?));
        Ok(())
    }

    #[test]
    fn seldom_time_to_make_some() -> Result {
        let mut lines = Lines::new(512, 1000)?;
        let (mut times, mut missed) = (0, 0);
        for item in 0..1000 {
            missed += u32::from(lines.take(size(1)?).is_none());
            if lines.is_low(size(1)?) {
                times += 1;
                while lines.short_of().is_some() {
                    assert_eq!(put(&mut lines, 1, item..item + 1)?, 1);
                }
            }
        }
        assert_eq!(missed, 1);
        assert!(times <= 1000 / 28 + 4);
        while lines.short_of().is_some() {
            assert_eq!(put(&mut lines, 1, 0..1)?, 1);
        }
        assert_eq!(lines.len(), 32);
        // They are kept while that goes on, and not when it doesn't.
        assert_eq!(surplus(&mut lines), 0);
        let _ = lines.take(size(1)?);
        let _ = surplus(&mut lines);
        assert_eq!(lines.len(), 8);
        Ok(())
    }

    #[test]
    fn time_to_make_some_after_a_failure() -> Result {
        let mut lines = Lines::new(512, 1000)?;
        assert_eq!(put(&mut lines, 1, 0..4)?, 4);
        let low: [bool; 6] = core::array::from_fn(|_| {
            let one = size(1).map(|one| (lines.take(one), lines.is_low(one)));
            one.is_ok_and(|(_, low)| low)
        });
        // Nobody made any.
        assert_eq!(low, [true, false, false, true, true, true]);
        Ok(())
    }

    #[test]
    fn idle_ones_go() -> Result {
        let mut lines = Lines::new(512, 1000)?;
        let _ = lines.take(size(1)?);
        assert_eq!(put(&mut lines, 1, 0..20)?, 20);
        // They weren't there at its beginning.
        assert_eq!(surplus(&mut lines), 0);
        // Three are in use.
        for _ in 0..3 {
            let _ = lines.take(size(1)?);
        }
        assert_eq!(put(&mut lines, 1, 0..3)?, 3);
        assert_eq!(surplus(&mut lines), 17 - 8);
        assert!(lines.len() == 3 + 8 && lines.short_of().is_none());
        // Nobody asks for any.
        assert_eq!(surplus(&mut lines), 3 + 8);
        assert!(lines.len() == 0 && lines.pages() == 0 && lines.short_of().is_none());
        Ok(())
    }
}
