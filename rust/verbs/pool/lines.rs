// SPDX-License-Identifier: GPL-2.0

//! The regions that are kept ready, by size, within a budget, and those that were idle for too
//! long.
//!
//! Sizes are powers of two, in pages. The lines don't depend on the type of the items.

use crate::prelude::*;
use kernel::page::PAGE_SIZE;
use kfabric::vec::Fifo;
use rdma::sg::Layout;

/// Checks whether a size is small.
const fn is_small(pages: u32) -> bool {
    pages <= 64
}

/// Returns how many regions of a size in use are kept ready ahead of need at first: many small
/// ones, some of those as long as the largest requests of disks, and none that are longer.
const fn ready_at_first(pages: u32) -> usize {
    if is_small(pages) {
        8
    } else if pages <= 512 {
        4
    } else {
        0
    }
}

/// The maximum of ready regions is this multiple of the first number. It is reached if regions are
/// asked for again and again. Then the work item that makes them is seldom woken, and makes many.
const GROWTH: usize = 4;

/// One line for each size.
pub(super) struct Lines<T> {
    /// By their number; too large for the stack.
    classes: KVec<Class<T>>,
    /// Most pages that are kept, of all sizes together.
    pub(super) budget: u64,
    /// How many are kept.
    pub(super) pages: u64,
}

/// One size.
struct Class<T> {
    /// How many pages one has, large ones counted as what they are as long as.
    pages: u32,
    line: Fifo<T>,
    /// Asked for since it was last idle for a whole period, so kept ready.
    wanted: bool,
    /// Asked for in this period.
    used: bool,
    /// How many are kept ready ahead of need: at first, and now.
    at_first: usize,
    ready: usize,
    /// How many there were at least in this period.
    low: usize,
    /// How many are to go.
    surplus: usize,
}

impl<T> Class<T> {
    fn new(pages: u32) -> Self {
        let at_first = ready_at_first(pages);
        Self {
            pages,
            line: Fifo::new(),
            wanted: false,
            used: false,
            at_first,
            ready: at_first,
            low: 0,
            surplus: 0,
        }
    }

    /// Returns the number of pages that the budget must have for making a region ahead of need. A
    /// region that comes back is worth more than a new one. So there must be space for a large one
    /// that comes back, too.
    fn room(&self) -> u64 {
        let pages = u64::from(self.pages);
        match is_small(self.pages) {
            true => pages,
            false => 2 * pages,
        }
    }

    /// Returns the number of ready regions below which some are made.
    fn low_mark(&self) -> usize {
        self.at_first / 2
    }

    #[inline]
    fn pop(&mut self) -> Option<T> {
        let item = self.line.pop()?;
        self.low = self.low.min(self.line.len());
        self.surplus = self.surplus.min(self.line.len());
        Some(item)
    }
}

impl<T> Lines<T> {
    /// Makes empty lines. May sleep.
    pub(super) fn new(max_pages: u32, budget: u64) -> Result<Self> {
        let mut classes = KVec::with_capacity(CLASSES, GFP_KERNEL)?;
        for size in (0..CLASSES).map(Size) {
            classes.push(Class::new(size.machine_pages(max_pages)), GFP_KERNEL)?;
        }
        Ok(Self {
            classes,
            budget,
            pages: 0,
        })
    }

    /// Returns the number of regions that are kept.
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(|class| class.line.len()).sum()
    }

    /// Returns each size with kept regions: the size, the number of machine pages that are as long
    /// as a region, and the number of regions.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (Size, u32, usize)> + '_ {
        let sizes = (0..CLASSES).map(Size);
        sizes
            .zip(&self.classes)
            .map(|(size, class)| (size, class.pages, class.line.len()))
            .filter(|&(.., len)| len > 0)
    }

    /// Takes the one of this size that has waited longest, if there is one. From now on the size is
    /// wanted.
    #[inline]
    pub(super) fn take(&mut self, size: Size) -> Option<T> {
        let class = self.classes.get_mut(size.0)?;
        class.wanted = true;
        class.used = true;
        let item = class.pop()?;
        self.pages -= u64::from(class.pages);
        Some(item)
    }

    /// Takes one of this size, if there is one beyond those small ones that are kept ready for who comes next: of
    /// large ones the budget has so few that they would be missed.
    pub(super) fn take_spare(&mut self, size: Size) -> Option<T> {
        let class = self.classes.get(size.0)?;
        let keep = match class.wanted && is_small(class.pages) {
            true => class.ready,
            false => 0,
        };
        (class.line.len() > keep).then(|| self.pop(size))?
    }

    fn pop(&mut self, size: Size) -> Option<T> {
        let class = self.classes.get_mut(size.0)?;
        let item = class.pop()?;
        self.pages -= u64::from(class.pages);
        Some(item)
    }

    /// Puts one in line; gives it back if that is beyond the budget, or if there is no memory. May
    /// sleep.
    #[inline]
    pub(super) fn put(&mut self, size: Size, item: T) -> Result<(), T> {
        let Some(class) = self.classes.get_mut(size.0) else {
            return Err(item);
        };
        let pages = self.pages + u64::from(class.pages);
        if pages > self.budget {
            return Err(item);
        }
        class.line.push(item)?;
        self.pages = pages;
        Ok(())
    }

    /// Returns a size with fewer ready regions than there should be.
    pub(super) fn short_of(&self) -> Option<Size> {
        (0..CLASSES).map(Size).find(|&size| self.is_short_of(size))
    }

    /// Checks whether a size has fewer ready regions than it should have.
    pub(super) fn is_short_of(&self, size: Size) -> bool {
        self.classes.get(size.0).is_some_and(|class| {
            class.wanted
                && class.line.len() < class.ready
                && self.pages + class.room() <= self.budget
        })
    }

    /// Checks whether some of this size must be made ahead of need. Called when one has been taken.
    /// Each time that the answer is yes, twice as many are kept ready, up to a bound.
    pub(super) fn is_low(&mut self, size: Size) -> bool {
        let Some(class) = self.classes.get_mut(size.0) else {
            return false;
        };
        if class.line.len() + 1 == class.low_mark() {
            class.ready = (2 * class.ready).min(GROWTH * class.at_first);
        } else if !class.line.is_empty() {
            // Above it, or who makes them has been told.
            return false;
        }
        self.is_short_of(size)
    }

    /// Ends a period. Regions that nobody needed in it must go, see [`surplus`](Self::surplus).
    /// Some regions of each size in use stay ready.
    pub(super) fn age(&mut self) {
        for class in &mut self.classes {
            // Nobody was woken since the last period: as many as at first will do.
            if class.low >= class.low_mark() || !class.used {
                class.ready = class.at_first;
            }
            let keep = match class.used {
                true => class.ready,
                false => 0,
            };
            class.surplus = class.low.saturating_sub(keep);
            class.wanted = class.used;
            class.used = false;
            class.low = class.line.len();
        }
    }

    /// Takes one that is to go.
    pub(super) fn surplus(&mut self) -> Option<T> {
        let index = self.classes.iter().position(|class| class.surplus > 0)?;
        let class = self.classes.get_mut(index)?;
        class.surplus -= 1;
        self.pop(Size(index))
    }

    /// Takes one, whichever.
    pub(super) fn any(&mut self) -> Option<T> {
        let index = self
            .classes
            .iter()
            .position(|class| !class.line.is_empty())?;
        self.pop(Size(index))
    }
}

/// Sizes from one page to 2^(SIZES - 1), more than any device has.
const SIZES: usize = 20;

/// The classes of pages, then those of large pages.
pub(super) const CLASSES: usize = 2 * SIZES;

/// Most pages of a region.
pub(crate) const MAX_PAGES: u32 = 1 << (SIZES - 1);

/// A size class, by its number from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) usize);

impl Size {
    /// Returns the smallest class that holds this many pages, no large ones; `None` if there is
    /// none.
    pub(super) fn of(pages: u32) -> Option<Self> {
        let class = usize::try_from(pages.checked_next_power_of_two()?.trailing_zeros()).ok()?;
        (class < SIZES).then_some(Self(class))
    }

    /// Returns the class as [`of`](Self::of) does, for regions of this kind; `None` also if none of
    /// the kind are kept.
    pub(super) fn of_kind(kind: Kind, pages: u32) -> Option<Self> {
        let Self(class) = Self::of(pages)?;
        match kind {
            Kind::Pages => Some(Self(class)),
            Kind::LargePages => Some(Self(class + SIZES)),
            Kind::Gaps => None,
        }
    }

    /// Returns the kind of the regions.
    pub(super) fn kind(self) -> Kind {
        match self.0 < SIZES {
            true => Kind::Pages,
            false => Kind::LargePages,
        }
    }

    /// Returns the number of machine pages that are as long as a region of this class. The device
    /// has at most `max_pages`.
    pub(super) fn machine_pages(self, max_pages: u32) -> u32 {
        // CAST: Both are small.
        const PER_LARGE: u32 = (Layout::LARGE as usize).div_ceil(PAGE_SIZE) as u32;
        match self.kind() {
            Kind::LargePages => self.pages(max_pages).saturating_mul(PER_LARGE),
            _ => self.pages(max_pages),
        }
    }

    /// Returns the number of pages, of its kind, that a region of this class has. The device has at
    /// most `max_pages`.
    pub(super) fn pages(self, max_pages: u32) -> u32 {
        u32::try_from(self.0 % SIZES)
            .ok()
            .and_then(|class| 1u32.checked_shl(class))
            .map_or(max_pages, |pages| pages.min(max_pages))
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_size)]
mod tests {
    use super::*;

    #[test]
    fn up_in_powers_of_two() {
        let pages = |wanted| Size::of(wanted).map(|size| size.pages(512));
        assert_eq!(pages(1), Some(1));
        assert_eq!(pages(2), Some(2));
        assert_eq!(pages(3), Some(4));
        assert_eq!(pages(257), Some(512));
        assert_eq!(pages(512), Some(512));
        assert_eq!(Size::of(400).map(|size| size.pages(500)), Some(500));
        assert_eq!(Size::of(u32::MAX), None);
        assert_eq!(Size::of(1 << 20), None);
    }

    #[test]
    fn of_either_kind() {
        let sizes = [1, 4, MAX_PAGES].map(Size::of);
        let large = [1, 4, MAX_PAGES].map(|pages| Size::of_kind(Kind::LargePages, pages));
        for (size, large) in sizes.iter().flatten().zip(large.iter().flatten()) {
            assert_eq!(size.kind(), Kind::Pages);
            assert_eq!(large.kind(), Kind::LargePages);
            assert_eq!(size.pages(u32::MAX), large.pages(u32::MAX));
            assert!(size != large && large.0 < CLASSES);
            assert_eq!(size.machine_pages(8), size.pages(8));
            assert!(large.machine_pages(8) >= large.pages(8));
            let again = Size::of_kind(Kind::Pages, size.pages(u32::MAX));
            assert_eq!(again, Some(*size));
        }
        assert!(large.iter().all(Option::is_some));
        assert_eq!(Size::of_kind(Kind::Gaps, 1), None);
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_lines)]
mod line_tests {
    use super::*;

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
        assert_eq!((lines.len(), lines.pages), (5, 20));
        assert_eq!(lines.take(size(16)?), Some(0));
        assert_eq!((lines.len(), lines.pages), (4, 4));
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
        assert!(lines.len() == 0 && lines.pages == 0 && lines.short_of().is_none());
        Ok(())
    }
}
