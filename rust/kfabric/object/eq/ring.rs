// SPDX-License-Identifier: GPL-2.0

//! Entries that wait to be read, in order, as many as there is room for.

mod kunit;

use core::mem::take;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A ring of entries that tells its reader where some are missing.
///
/// An entry that comes when the ring is full is lost. The entries before it are read as ever; then
/// the reader gets [`First::Lost`], once, and then what came later.
///
/// An entry can be taken out anywhere, in a time that doesn't depend on how many there are: the
/// slots are linked.
///
/// # Invariants
///
/// From `first` by `after`, and from `last` by `before`, go all slots that have an entry; from
/// `free` by `after` go all others.
pub(super) struct Ring<T> {
    slots: KVVec<Slot<T>>,
    first: Link,
    last: Link,
    free: Link,
    /// Entries were lost that would come before the first.
    lost: bool,
    /// How many entries have been put in; never wraps.
    pushed: u64,
    /// How many slots have been looked at.
    #[cfg(CONFIG_KUNIT = "y")]
    looked_at: usize,
}

/// The index of a slot.
type Link = Option<usize>;

struct Slot<T> {
    entry: Option<T>,
    before: Link,
    after: Link,
    /// Which entry of all it has, or had last.
    number: u64,
    /// Entries were lost that would come after this one.
    lost_next: bool,
}

/// Where an entry is, as long as it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    slot: usize,
    number: u64,
}

/// What there is to read: an entry as a `T`.
pub(super) enum First<T> {
    /// Nothing.
    Nothing,
    /// That entries were lost here.
    Lost,
    /// An entry.
    Entry(T),
}

impl<T> Ring<T> {
    /// Makes a ring with room for `size` entries, of which there is at least one. May sleep.
    pub(super) fn new(size: usize) -> Result<Self, AllocError> {
        let size = size.max(1);
        let mut slots = KVVec::with_capacity(size, GFP_KERNEL)?;
        for index in 0..size {
            let slot = Slot {
                entry: None,
                before: None,
                after: Some(index + 1).filter(|&next| next < size),
                number: 0,
                lost_next: false,
            };
            slots.push(slot, GFP_KERNEL)?;
        }
        // INVARIANT: All are free.
        Ok(Self {
            slots,
            first: None,
            last: None,
            free: Some(0),
            lost: false,
            pushed: 0,
            #[cfg(CONFIG_KUNIT = "y")]
            looked_at: 0,
        })
    }

    /// Returns a ring that takes nothing.
    pub(super) const fn without_room() -> Self {
        // INVARIANT: There are no slots.
        Self {
            slots: KVVec::new(),
            first: None,
            last: None,
            free: None,
            lost: false,
            pushed: 0,
            #[cfg(CONFIG_KUNIT = "y")]
            looked_at: 0,
        }
    }

    fn slot(&mut self, link: Link) -> Option<&mut Slot<T>> {
        #[cfg(CONFIG_KUNIT = "y")]
        {
            self.looked_at += 1;
        }
        self.slots.get_mut(link?)
    }

    /// Puts an entry behind all others; `None` if there is no room, and nothing happens. Any
    /// context.
    pub(super) fn try_push(&mut self, entry: T) -> Option<Place> {
        let (at, last, number) = (self.free, self.last, self.pushed);
        let slot = self.slot(at)?;
        let free = slot.after;
        *slot = Slot {
            entry: Some(entry),
            before: last,
            after: None,
            number,
            lost_next: false,
        };
        // INVARIANT: The first free slot becomes the last that has an entry.
        match self.slot(last) {
            Some(last) => last.after = at,
            None => self.first = at,
        }
        self.last = at;
        self.free = free;
        self.pushed += 1;
        at.map(|slot| Place { slot, number })
    }

    /// Puts an entry behind all others. Where there is no room, it is lost, and the reader will
    /// know. Any context.
    pub(super) fn push(&mut self, entry: T) -> Option<Place> {
        let place = self.try_push(entry);
        if place.is_none() {
            let last = self.last;
            if let Some(last) = self.slot(last) {
                last.lost_next = true;
            }
        }
        place
    }

    /// Is there nothing to read? Any context.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && !self.lost
    }

    /// Returns what the reader gets next. Any context.
    pub(super) fn first(&self) -> First<&T> {
        if self.lost {
            return First::Lost;
        }
        match self.first.and_then(|first| self.slots.get(first)) {
            Some(Slot {
                entry: Some(entry), ..
            }) => First::Entry(entry),
            _ => First::Nothing,
        }
    }

    /// Takes away what [`first`](Self::first) gives, and returns it if it is an entry. Any context.
    pub(super) fn advance(&mut self) -> Option<T> {
        match take(&mut self.lost) {
            true => None,
            false => self.take(self.first),
        }
    }

    /// Takes away all entries that this is true of. Any context.
    pub(super) fn remove_if(&mut self, mut goes: impl FnMut(&T) -> bool) {
        let mut at = self.first;
        while let Some(slot) = at.and_then(|at| self.slots.get(at)) {
            let here = core::mem::replace(&mut at, slot.after);
            if slot.entry.as_ref().is_some_and(&mut goes) {
                self.take(here);
            }
        }
    }

    /// Takes an entry away, unless it was read before, and no word of those that were lost. Any
    /// context.
    pub(super) fn remove(&mut self, place: Place) {
        let at = Some(place.slot);
        if self
            .slot(at)
            .is_some_and(|slot| slot.number == place.number)
        {
            self.take(at);
        }
    }

    /// Takes an entry away, if there is one. What was lost after it was lost before the next.
    fn take(&mut self, at: Link) -> Option<T> {
        let free = self.free;
        let slot = self.slot(at)?;
        let entry = slot.entry.take()?;
        let (before, after, lost) = (slot.before, slot.after, slot.lost_next);
        slot.after = free;
        // INVARIANT: The slots around it are each other's neighbours now, and it is free.
        self.free = at;
        match self.slot(before) {
            Some(before) => {
                before.after = after;
                before.lost_next |= lost;
            }
            None => {
                self.first = after;
                self.lost |= lost;
            }
        }
        match self.slot(after) {
            Some(after) => after.before = before,
            None => self.last = before,
        }
        Some(entry)
    }
}
