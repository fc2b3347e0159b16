// SPDX-License-Identifier: GPL-2.0

//! What has completed and was not read yet, in order.
//!
//! What there is to say of an operation that has ended.

use crate::support::errno::Errno;
use core::ptr;
use kernel::{
    alloc::AllocError,
    ffi::c_void,
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

/// A pointer of the consumer's, such as the context of an operation: opaque, never followed, and
/// given back bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context(*mut c_void);

// SAFETY: The pointer is handed through to the consumer, and not followed.
unsafe impl Send for Context {}
// SAFETY: As for `Send`; it never changes.
unsafe impl Sync for Context {}

impl Context {
    /// None, which the consumer gets as NULL.
    pub const NULL: Self = Self(ptr::null_mut());

    /// What the consumer gave.
    pub const fn new(given: *mut c_void) -> Self {
        Self(given)
    }

    /// What the consumer gets.
    pub const fn as_ptr(self) -> *mut c_void {
        self.0
    }
}

/// An operation that has ended: what the consumer reads of it, as far as the format of its queue
/// has room for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The context that was given with the operation.
    pub context: Context,
    /// Which kind of operation it was, and which of the other fields are valid.
    pub flags: u64,
    /// How many bytes were received.
    pub len: usize,
    /// Where they went, for a buffer that receives several messages.
    pub buf: Context,
    /// The peer's remote CQ data, with `KFI_REMOTE_CQ_DATA` in the flags.
    pub data: u64,
}

impl Completion {
    pub(super) const NONE: Self = Self {
        context: Context::NULL,
        flags: 0,
        len: 0,
        buf: Context::NULL,
        data: 0,
    };
}

/// An operation that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What there is to say of any operation.
    pub done: Completion,
    /// How many bytes of a message there was no room for.
    pub olen: usize,
    /// Why it failed.
    pub errno: Errno,
    /// The provider's own number for that. The core has words for those of `kfi_errno.h`, positive.
    pub prov_errno: i32,
}
