// SPDX-License-Identifier: GPL-2.0

//! What has completed and was not read yet, in order.

use super::completion::{
    Completion,
    Failure, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// An operation that has ended one way or the other.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    Done(Completion),
    Failed(Failure),
}

/// A ring of entries.
///
/// # Invariants
///
/// From `first` on, and round the end, there are `len` entries, of which `failures` are failures;
/// `len` is at most the number of slots.
pub(super) struct Ring {
    slots: KVVec<Entry>,
    first: usize,
    len: usize,
    failures: usize,
}

impl Ring {
    /// Makes a ring with room for `size` entries. May sleep.
    pub(super) fn new(size: usize) -> Result<Self, AllocError> {
        let none = Entry::Done(Completion::NONE);
        let slots = KVVec::from_elem(none, size, GFP_KERNEL)?;
        // INVARIANT: There are none.
        Ok(Self {
            slots,
            ..Self::without_room()
        })
    }

    /// A ring without room for any.
    pub(super) const fn without_room() -> Self {
        // INVARIANT: There are none.
        Self {
            slots: KVVec::new(),
            first: 0,
            len: 0,
            failures: 0,
        }
    }

    /// The slot that is so many behind the first entry, or the first itself.
    fn slot(&self, behind: usize) -> usize {
        let at = self.first + behind;
        at.checked_sub(self.slots.len()).unwrap_or(at)
    }

    /// Puts an entry behind all others, and returns whether there was room. Any context.
    pub(super) fn push(&mut self, entry: Entry) -> bool {
        if self.len == self.slots.len() {
            return false;
        }
        let at = self.slot(self.len);
        let Some(slot) = self.slots.get_mut(at) else {
            return false;
        };
        *slot = entry;
        // INVARIANT: It is behind the last one.
        self.len += 1;
        self.failures += usize::from(matches!(entry, Entry::Failed(_)));
        true
    }

    /// Returns what is next. Any context.
    pub(super) fn first(&self) -> Option<&Entry> {
        match self.len {
            0 => None,
            _ => self.slots.get(self.first),
        }
    }

    /// Takes out what is next, if it is a completion. Any context.
    pub(super) fn pop_done(&mut self) -> Option<Completion> {
        let Some(Entry::Done(done)) = self.first() else {
            return None;
        };
        let done = *done;
        self.advance();
        Some(done)
    }

    /// Takes out what is next, if it is a failure. Any context.
    pub(super) fn pop_failed(&mut self) -> Option<Failure> {
        let Some(Entry::Failed(failure)) = self.first() else {
            return None;
        };
        let failure = *failure;
        self.advance();
        self.failures -= 1;
        Some(failure)
    }

    fn advance(&mut self) {
        // INVARIANT: The first one is no entry any more. There was one.
        self.first = self.slot(1);
        self.len -= 1;
    }

    /// How many entries there are. Any context.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Is one of them a failure? Any context.
    pub(super) fn has_failure(&self) -> bool {
        self.failures > 0
    }
}
