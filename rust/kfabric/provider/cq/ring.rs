// SPDX-License-Identifier: GPL-2.0

//! The unread entries of a completion queue.

use crate::prelude::*;
use kernel::alloc::AllocError;

/// The completion of an operation that has succeeded or failed.
pub(super) type CqOutcome = Result<CqEntry, CqErrEntry>;

/// A ring of entries.
///
/// # Invariants
///
/// - `len` is at most the number of slots.
/// - The entries are in `len` slots from `first` on, which wrap at the end.
/// - `failures` of the entries are failures.
pub(super) struct CqRing {
    slots: KVVec<CqOutcome>,
    first: usize,
    len: usize,
    failures: usize,
}

impl CqRing {
    /// Creates a ring of `size` slots. May sleep.
    pub(super) fn new(size: usize) -> Result<Self, AllocError> {
        let slots = KVVec::from_elem(Ok(CqEntry::NONE), size, GFP_KERNEL)?;
        // INVARIANT: There are no entries.
        Ok(Self {
            slots,
            ..Self::without_room()
        })
    }

    /// Creates a ring without slots.
    pub(super) const fn without_room() -> Self {
        // INVARIANT: There are no entries.
        Self {
            slots: KVVec::new(),
            first: 0,
            len: 0,
            failures: 0,
        }
    }

    /// Returns the index of the slot that is `behind` slots after the first entry.
    fn slot(&self, behind: usize) -> usize {
        let at = self.first + behind;
        at.checked_sub(self.slots.len()).unwrap_or(at)
    }

    /// Appends an entry. Returns false if the ring is full. Any context.
    pub(super) fn push(&mut self, entry: CqOutcome) -> bool {
        if self.len == self.slots.len() {
            return false;
        }
        let at = self.slot(self.len);
        let Some(slot) = self.slots.get_mut(at) else {
            return false;
        };
        *slot = entry;
        // INVARIANT: The new entry follows the last one.
        self.len += 1;
        self.failures += usize::from(entry.is_err());
        true
    }

    /// Returns the first entry. Any context.
    pub(super) fn first(&self) -> Option<CqOutcome> {
        match self.len {
            0 => None,
            _ => self.slots.get(self.first).copied(),
        }
    }

    /// Removes the first entry if it is a completion, and returns it. Any context.
    pub(super) fn pop_done(&mut self) -> Option<CqEntry> {
        let done = self.first()?.ok()?;
        self.advance();
        Some(done)
    }

    /// Removes the first entry if it is a failure, and returns it. Any context.
    pub(super) fn pop_failed(&mut self) -> Option<CqErrEntry> {
        let failure = self.first()?.err()?;
        self.advance();
        self.failures -= 1;
        Some(failure)
    }

    fn advance(&mut self) {
        // INVARIANT: The caller has found a first entry, which this removes.
        self.first = self.slot(1);
        self.len -= 1;
    }

    /// Returns the number of entries. Any context.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether an entry is a failure. Any context.
    pub(super) fn has_failure(&self) -> bool {
        self.failures > 0
    }
}

/// An opaque pointer of the consumer, for example the context of an operation. It is never dereferenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context(pub(crate) *mut c_void);

// SAFETY: The pointer is passed to the consumer, and never dereferenced.
unsafe impl Send for Context {}
// SAFETY: The pointer is constant, and never dereferenced.
unsafe impl Sync for Context {}

impl Context {
    /// The NULL pointer.
    pub const NULL: Self = Self(ptr::null_mut());

    /// Creates a context from the consumer's pointer.
    pub const fn new(given: *mut c_void) -> Self {
        Self(given)
    }

    /// Returns the pointer for the consumer.
    pub const fn as_ptr(self) -> *mut c_void {
        self.0
    }
}

/// The completion of an operation. The format of the queue decides which fields the consumer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqEntry {
    /// The context of the operation.
    pub context: Context,
    /// Flags for the kind of operation and the valid fields.
    pub flags: u64,
    /// The number of received bytes.
    pub len: usize,
    /// The address of the bytes, for a buffer that receives several messages.
    pub buf: Context,
    /// The peer's remote CQ data, with `KFI_REMOTE_CQ_DATA` in the flags.
    pub data: u64,
}

impl CqEntry {
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
pub struct CqErrEntry {
    /// The fields of a completion.
    pub done: CqEntry,
    /// The number of bytes of a message that exceed the buffer.
    pub olen: usize,
    /// The errno.
    pub errno: Errno,
    /// The provider's error number. The core has texts for positive numbers of `kfi_errno.h`.
    pub prov_errno: i32,
}
