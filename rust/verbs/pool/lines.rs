// SPDX-License-Identifier: GPL-2.0

//! What is kept ready, by size, within a budget; and what has been idle for so long that it goes.
//!
//! Nothing here knows what it is that is kept.

use kfabric::line::Line;

/// Sizes from one page to 2^(CLASSES - 1), more than any device has.
const CLASSES: usize = 20;

/// Most pages of a region.
pub(crate) const MAX_PAGES: u32 = 1 << (CLASSES - 1);

/// How many of a size that is in use are kept ready ahead of need.
pub(super) const READY: usize = 8;

/// Of larger ones none is made ahead of need.
const READY_PAGES: u32 = 64;

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(usize);

impl Size {
    /// The smallest class that holds this many pages; `None` if there is none.
    pub(super) fn of(pages: u32) -> Option<Self> {
        let class = usize::try_from(pages.checked_next_power_of_two()?.trailing_zeros()).ok()?;
        (class < CLASSES).then_some(Self(class))
    }

    /// How many pages one of this class has, where the device has no more than `max_pages`.
    pub(super) fn pages(self, max_pages: u32) -> u32 {
        u32::try_from(self.0)
            .ok()
            .and_then(|class| 1u32.checked_shl(class))
            .map_or(max_pages, |pages| pages.min(max_pages))
    }
}

/// One line for each size.
pub(super) struct Lines<T> {
    classes: [Class<T>; CLASSES],
    /// Most pages of one.
    max_pages: u32,
    /// Most pages that are kept, of all sizes together.
    budget: u64,
    /// How many are kept.
    pages: u64,
}

/// One size.
struct Class<T> {
    line: Line<T>,
    /// Asked for since it was last idle for a whole period, so kept ready.
    wanted: bool,
    /// Asked for in this period.
    used: bool,
    /// How many there were at least in this period.
    low: usize,
    /// How many are to go.
    surplus: usize,
}

impl<T> Class<T> {
    const NEW: Self = Self {
        line: Line::new(),
        wanted: false,
        used: false,
        low: 0,
        surplus: 0,
    };
}

impl<T> Lines<T> {
    /// Nothing yet.
    pub(super) const fn new(max_pages: u32, budget: u64) -> Self {
        Self {
            classes: [const { Class::NEW }; CLASSES],
            max_pages,
            budget,
            pages: 0,
        }
    }

    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// How many pages are kept.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(|class| class.line.len()).sum()
    }

    /// Each size of which some are kept: its pages, and how many.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let size = |(index, class): (usize, &Class<T>)| {
            (Size(index).pages(self.max_pages), class.line.len())
        };
        self.classes
            .iter()
            .enumerate()
            .map(size)
            .filter(|&(_, len)| len > 0)
    }

    /// Takes the one of this size that has waited longest, if there is one. From now on the size is
    /// wanted.
    pub(super) fn take(&mut self, size: Size) -> Option<T> {
        let class = self.classes.get_mut(size.0)?;
        class.wanted = true;
        class.used = true;
        self.pop(size)
    }

    fn pop(&mut self, size: Size) -> Option<T> {
        let class = self.classes.get_mut(size.0)?;
        let item = class.line.pop()?;
        class.low = class.low.min(class.line.len());
        class.surplus = class.surplus.min(class.line.len());
        self.pages -= u64::from(size.pages(self.max_pages));
        Some(item)
    }

    /// Puts one in line; gives it back if that is beyond the budget, or if there is no memory. May
    /// sleep.
    pub(super) fn put(&mut self, size: Size, item: T) -> Result<(), T> {
        let pages = u64::from(size.pages(self.max_pages));
        match self.classes.get_mut(size.0) {
            Some(class) if self.pages + pages <= self.budget => class.line.push(item)?,
            _ => return Err(item),
        }
        self.pages += pages;
        Ok(())
    }

    /// How many of a size are made ahead of need.
    fn ready(&self, size: Size) -> usize {
        match size.pages(self.max_pages) <= READY_PAGES {
            true => READY,
            false => 0,
        }
    }

    /// A size of which there are fewer than there should be ready.
    pub(super) fn short_of(&self) -> Option<Size> {
        let short = |&(index, class): &(usize, &Class<T>)| {
            let size = Size(index);
            class.wanted
                && class.line.len() < self.ready(size)
                && self.pages + u64::from(size.pages(self.max_pages)) <= self.budget
        };
        self.classes
            .iter()
            .enumerate()
            .find(short)
            .map(|(index, _)| Size(index))
    }

    /// Is it time to make some of this size ahead of need?
    pub(super) fn is_low(&self, size: Size) -> bool {
        let ready = self.ready(size);
        self.classes
            .get(size.0)
            .is_some_and(|class| ready > 0 && class.line.len() < ready / 2)
    }

    /// A period is over: what nobody needed in it is to go, see [`surplus`](Self::surplus). Of a
    /// size that was asked for some stay ready.
    pub(super) fn age(&mut self) {
        for index in 0..CLASSES {
            let ready = self.ready(Size(index));
            if let Some(class) = self.classes.get_mut(index) {
                let keep = if class.used { ready } else { 0 };
                class.surplus = class.low.saturating_sub(keep);
                class.wanted = class.used;
                class.used = false;
                class.low = class.line.len();
            }
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

    /// None is wanted any more, and none is kept from now on.
    pub(super) fn close(&mut self) {
        self.budget = 0;
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_lines)]
mod tests {
    use super::*;
    use kernel::prelude::*;

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
    fn sizes() {
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
    fn first_come_first_served() -> Result {
        let mut lines = Lines::new(512, 100);
        assert_eq!(put(&mut lines, 1, 0..4)?, 4);
        for i in 0..100 {
            assert_eq!(lines.take(size(1)?), Some(i));
            assert_eq!(put(&mut lines, 1, i + 4..i + 5)?, 1);
        }
        Ok(())
    }

    #[test]
    fn no_more_than_the_budget() -> Result {
        let mut lines = Lines::new(512, 20);
        assert_eq!(put(&mut lines, 16, 0..2)?, 1);
        assert_eq!(put(&mut lines, 1, 0..9)?, 4);
        assert_eq!((lines.len(), lines.pages()), (5, 20));
        assert_eq!(lines.take(size(16)?), Some(0));
        assert_eq!((lines.len(), lines.pages()), (4, 4));
        assert_eq!(put(&mut lines, 4, 0..9)?, 4);
        assert_eq!(put(&mut Lines::new(512, 0), 1, 0..2)?, 0);
        Ok(())
    }

    #[test]
    fn ahead_of_need_only_what_is_small_and_wanted() -> Result {
        let mut lines = Lines::<u32>::new(512, 1000);
        assert_eq!(lines.short_of(), None);
        let _ = lines.take(size(512)?);
        assert!(lines.short_of().is_none() && !lines.is_low(size(512)?));
        let _ = lines.take(size(8)?);
        assert!(lines.short_of() == Size::of(8) && lines.is_low(size(8)?));
        assert_eq!(put(&mut lines, 8, 0..8)?, 8);
        assert!(lines.short_of().is_none() && !lines.is_low(size(8)?));
        let mut poor = Lines::<u32>::new(512, 7);
        let _ = poor.take(size(8)?);
        assert_eq!(poor.short_of(), None);
        Ok(())
    }

    #[test]
    fn idle_ones_go() -> Result {
        let mut lines = Lines::new(512, 1000);
        let _ = lines.take(size(1)?);
        assert_eq!(put(&mut lines, 1, 0..20)?, 20);
        // They weren't there at its beginning.
        assert_eq!(surplus(&mut lines), 0);
        // Three are in use.
        for _ in 0..3 {
            let _ = lines.take(size(1)?);
        }
        assert_eq!(put(&mut lines, 1, 0..3)?, 3);
        assert_eq!(surplus(&mut lines), 17 - READY);
        assert!(lines.len() == 3 + READY && lines.short_of().is_none());
        // Nobody asks for any.
        assert_eq!(surplus(&mut lines), 3 + READY);
        assert!(lines.len() == 0 && lines.pages() == 0 && lines.short_of().is_none());
        Ok(())
    }
}
