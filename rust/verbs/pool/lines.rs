// SPDX-License-Identifier: GPL-2.0

//! What is kept ready, by size, within a budget; and what has been idle for so long that it goes.
//!
//! Nothing here knows what it is that is kept.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use super::size::{
    Size,
    CLASSES, //
};
use kfabric::line::Line;

/// How many of a size that is in use are kept ready ahead of need.
pub(super) const READY: usize = 8;

/// Of larger ones none is made ahead of need.
const READY_PAGES: u32 = 64;

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
            (
                Size::of_class(index).pages(self.max_pages),
                class.line.len(),
            )
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
        let class = self.classes.get_mut(size.class())?;
        class.wanted = true;
        class.used = true;
        self.pop(size)
    }

    fn pop(&mut self, size: Size) -> Option<T> {
        let class = self.classes.get_mut(size.class())?;
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
        match self.classes.get_mut(size.class()) {
            Some(class) if self.pages + pages <= self.budget => class.line.push(item)?,
            _ => return Err(item),
        }
        self.pages += pages;
        Ok(())
    }

    /// How many of a size are made ahead of need.
    fn ready(&self, size: Size) -> usize {
        if size.pages(self.max_pages) <= READY_PAGES {
            READY
        } else {
            0
        }
    }

    /// A size of which there are fewer than there should be ready.
    pub(super) fn short_of(&self) -> Option<Size> {
        let short = |&(index, class): &(usize, &Class<T>)| {
            let size = Size::of_class(index);
            class.wanted
                && class.line.len() < self.ready(size)
                && self.pages + u64::from(size.pages(self.max_pages)) <= self.budget
        };
        self.classes
            .iter()
            .enumerate()
            .find(short)
            .map(|(index, _)| Size::of_class(index))
    }

    /// Is it time to make some of this size ahead of need?
    pub(super) fn is_low(&self, size: Size) -> bool {
        let ready = self.ready(size);
        self.classes
            .get(size.class())
            .is_some_and(|class| ready > 0 && class.line.len() < ready / 2)
    }

    /// A period is over: what nobody needed in it is to go, see [`surplus`](Self::surplus). Of a
    /// size that was asked for some stay ready.
    pub(super) fn age(&mut self) {
        for index in 0..CLASSES {
            let ready = self.ready(Size::of_class(index));
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
        self.pop(Size::of_class(index))
    }

    /// Takes one, whichever.
    pub(super) fn any(&mut self) -> Option<T> {
        let index = self
            .classes
            .iter()
            .position(|class| !class.line.is_empty())?;
        self.pop(Size::of_class(index))
    }

    /// None is wanted any more, and none is kept from now on.
    pub(super) fn close(&mut self) {
        self.budget = 0;
    }
}
