// SPDX-License-Identifier: GPL-2.0

//! Entries that wait to be read, in order, as many as there is room for.

use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A ring of entries that tells its reader where some are missing.
///
/// An entry that comes when the ring is full is lost. The entries before it are read as ever; then
/// the reader gets [`First::Lost`], once, and then what came later.
///
/// # Invariants
///
/// `len` slots from `head` on, going round, are filled; the others are empty.
pub(super) struct Ring<T> {
    slots: KVVec<Option<Slot<T>>>,
    head: usize,
    len: usize,
    /// Entries were lost that would come before the first.
    lost: bool,
}

struct Slot<T> {
    entry: T,
    /// Entries were lost that would come after this one.
    lost_next: bool,
}

/// What there is to read.
pub(super) enum First<'a, T> {
    /// Nothing.
    Nothing,
    /// That entries were lost here.
    Lost,
    /// An entry.
    Entry(&'a T),
}

impl<T> Ring<T> {
    /// A ring with room for `size` entries, of which there is at least one. May sleep.
    pub(super) fn new(size: usize) -> Result<Self, AllocError> {
        let size = size.max(1);
        let mut slots = KVVec::with_capacity(size, GFP_KERNEL)?;
        for _ in 0..size {
            slots.push(None, GFP_KERNEL)?;
        }
        // INVARIANT: All are empty.
        Ok(Self {
            slots,
            head: 0,
            len: 0,
            lost: false,
        })
    }

    /// The slot of the `index`th entry, if it were there.
    fn slot(&mut self, index: usize) -> Option<&mut Option<Slot<T>>> {
        let size = self.slots.len();
        let after = size - self.head;
        // Not by a remainder: the sum could overflow, and division is slow.
        let at = match index < after {
            true => self.head + index,
            false => index - after,
        };
        self.slots.get_mut(at)
    }

    /// Puts an entry behind all others; `false` if there is no room, and nothing happens. Any
    /// context.
    pub(super) fn try_push(&mut self, entry: T) -> bool {
        if self.len == self.slots.len() {
            return false;
        }
        let end = self.len;
        if let Some(slot) = self.slot(end) {
            // INVARIANT: The slot after the last one is filled.
            *slot = Some(Slot {
                entry,
                lost_next: false,
            });
            self.len += 1;
        }
        true
    }

    /// Puts an entry behind all others. Where there is no room, it is lost, and the reader will
    /// know. Any context.
    pub(super) fn push(&mut self, entry: T) {
        if !self.try_push(entry) {
            let last = self.len - 1;
            self.lose_after(last);
        }
    }

    fn lose_after(&mut self, index: usize) {
        if let Some(Some(slot)) = self.slot(index) {
            slot.lost_next = true;
        }
    }

    /// Is there nothing to read? Any context.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0 && !self.lost
    }

    /// What the reader gets next. Any context.
    pub(super) fn first(&self) -> First<'_, T> {
        if self.lost {
            return First::Lost;
        }
        match self.slots.get(self.head) {
            Some(Some(slot)) => First::Entry(&slot.entry),
            _ => First::Nothing,
        }
    }

    /// Takes away what [`first`](Self::first) gives. Any context.
    pub(super) fn advance(&mut self) {
        if self.lost {
            self.lost = false;
        } else if let Some(slot) = self.take_first() {
            self.lost = slot.lost_next;
        }
    }

    fn take_first(&mut self) -> Option<Slot<T>> {
        let slot = self.slots.get_mut(self.head)?.take()?;
        self.head = match self.head + 1 {
            end if end == self.slots.len() => 0,
            next => next,
        };
        // INVARIANT: The first is empty now and doesn't count any more.
        self.len -= 1;
        Some(slot)
    }

    /// Takes away all entries but those to `keep`, and no word of those that were lost. Takes time
    /// in proportion to the entries. Any context.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let mut kept = 0;
        for index in 0..self.len {
            // Most often all are kept, and none has to move.
            let stays = |slot: &Slot<T>| index == kept && keep(&slot.entry);
            if self
                .slot(index)
                .is_some_and(|slot| slot.as_ref().is_some_and(stays))
            {
                kept += 1;
                continue;
            }
            let Some(slot) = self.slot(index).and_then(Option::take) else {
                continue;
            };
            if keep(&slot.entry) {
                if let Some(to) = self.slot(kept) {
                    *to = Some(slot);
                }
                kept += 1;
            } else if slot.lost_next {
                match kept.checked_sub(1) {
                    Some(before) => self.lose_after(before),
                    None => self.lost = true,
                }
            }
        }
        // INVARIANT: Those that are kept moved to the front; all others were taken out.
        self.len = kept;
    }
}

#[kernel::macros::kunit_tests(kfabric_eq_ring)]
mod tests {
    use super::*;

    /// Reads everything; `None` stands for what was lost.
    fn drain(ring: &mut Ring<u32>) -> Result<KVec<Option<u32>>> {
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
        let mut ring = Ring::new(3)?;
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
        let mut ring = Ring::new(2)?;
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
        let mut ring = Ring::new(1)?;
        assert!(ring.try_push(1));
        assert!(!ring.try_push(2));
        assert_eq!(&*drain(&mut ring)?, &[Some(1)]);
        Ok(())
    }

    #[test]
    fn retain_keeps_the_order_and_makes_room() -> Result {
        let mut ring = Ring::new(4)?;
        // So that the entries go round the end.
        for entry in 0..3 {
            ring.push(entry);
            ring.advance();
        }
        for entry in 1..=5 {
            ring.push(entry);
        }
        ring.retain(|entry| entry % 2 != 0);
        ring.push(6);
        ring.push(7);
        ring.push(8);
        let all = [Some(1), Some(3), None, Some(6), Some(7), None];
        assert_eq!(&*drain(&mut ring)?, &all);
        Ok(())
    }

    #[test]
    fn retain_never_hides_a_loss() -> Result {
        let mut ring = Ring::new(1)?;
        ring.push(1);
        ring.push(2);
        ring.retain(|_| false);
        assert!(!ring.is_empty());
        ring.push(3);
        assert_eq!(&*drain(&mut ring)?, &[None, Some(3)]);
        Ok(())
    }
}
