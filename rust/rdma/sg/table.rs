// SPDX-License-Identifier: GPL-2.0

//! The memory of scatterlists.

use crate::prelude::*;

/// The caches for lists. The owner must drop them after the last list, which sleeps.
pub struct Caches(());

impl Caches {
    /// Creates the caches. Returns [`ENOMEM`] without memory. May sleep.
    ///
    /// # Safety
    ///
    /// Must be called once, before the first list is created.
    pub unsafe fn new() -> Result<Self> {
        // SAFETY: This is the only call, and no list exists, by the function's contract.
        to_result(unsafe { rdma_bindings::rdma_helper_sg_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Caches {
    fn drop(&mut self) {
        // SAFETY: `new()` created the caches. No list exists, as the type demands.
        unsafe { rdma_bindings::rdma_helper_sg_exit() };
    }
}

/// The entries and the state of a list. It grows while it is filled.
///
/// It is one pointer, since a list is moved with the region that is made of it.
///
/// # Invariants
///
/// - The helpers allocated the first chunk, and each that follows.
/// - Only this table uses the chunks. The table of a [`Shared`] uses none while it is lent.
/// - `lender` of the first chunk is null, or a reference to the [`Shared`] whose table is lent.
pub(super) struct Table(NonNull<Chunk>);

type Chunk = rdma_bindings::rdma_helper_sg_chunk;

// SAFETY: Any task may free chunks or return them.
unsafe impl Send for Table {}

// SAFETY: Shared references only read fields that do not change meanwhile.
unsafe impl Sync for Table {}

impl Table {
    /// Takes the spare table if it is free, or allocates a table for about `expected` entries. A
    /// brief table is larger. May sleep.
    pub(super) fn get(expected: u32, brief: bool, spare: Option<&SpareTable>) -> Result<Self> {
        if let Some(lent) = spare.and_then(SpareTable::lend) {
            return Ok(lent);
        }
        // SAFETY: The helper accepts every number.
        let chunk = unsafe { rdma_bindings::rdma_helper_sg_begin(expected, brief) };
        // INVARIANT: The chunk is new, without a following one and without a lender.
        Ok(Self(NonNull::new(chunk).ok_or(ENOMEM)?))
    }

    /// Returns the first chunk.
    pub(super) fn as_raw(&self) -> *mut Chunk {
        self.0.as_ptr()
    }

    /// Returns the state of the list.
    pub(super) fn head(&self) -> &Chunk {
        // SAFETY: The first chunk is valid by the type invariant. It changes through an exclusive
        // reference only, except for its entries.
        unsafe { self.0.as_ref() }
    }

    /// Returns the state of the list for changes.
    pub(super) fn head_mut(&mut self) -> &mut Chunk {
        // SAFETY: The first chunk is valid, and only `self` uses it, by the type invariant.
        unsafe { self.0.as_mut() }
    }

    /// Returns the first entry.
    pub(super) fn first(&self) -> *mut bindings::scatterlist {
        // SAFETY: The first chunk is valid by the type invariant.
        unsafe { (&raw mut (*self.as_raw()).entries).cast() }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let first = self.as_raw();
        let lender = mem::replace(&mut self.head_mut().lender, null_mut());
        if lender.is_null() {
            // SAFETY: The helpers allocated the chunks, and only `self` uses them, by the type
            // invariant.
            return unsafe { rdma_bindings::rdma_helper_sg_free(first) };
        }
        // SAFETY: The first chunk is valid and exclusively owned. The following chunks belong to
        // the list, which is dropped.
        unsafe {
            rdma_bindings::rdma_helper_sg_free((*first).next);
            (*first).next = null_mut();
        }
        // SAFETY: `lender` is a reference to a `Shared` by the type invariant, and was taken out of
        // the chunk.
        let shared = unsafe { Arc::<Shared>::from_raw(lender.cast()) };
        shared.lent.store(false, Release);
    }
}

/// A table for one list after the other.
pub struct SpareTable(Arc<Shared>);

struct Shared {
    table: Table,
    /// True while a list has the table, and with it a reference to this.
    lent: Atomic<bool>,
}

impl SpareTable {
    /// Allocates a table for `count` entries. A longer list grows it. May sleep.
    pub fn alloc(count: u32) -> Result<Self> {
        // SAFETY: The helper accepts every number.
        let chunk = unsafe { rdma_bindings::rdma_helper_sg_alloc(count) };
        let shared = Shared {
            // INVARIANT: The chunk is new, without a following one and without a lender.
            table: Table(NonNull::new(chunk).ok_or(ENOMEM)?),
            lent: Atomic::new(false),
        };
        Ok(Self(Arc::new(shared, GFP_KERNEL)?))
    }

    /// Checks whether a list has the table. Any context.
    pub fn is_lent(&self) -> bool {
        self.0.lent.load(Acquire)
    }

    /// Lends the table to a list, unless another list has it.
    fn lend(&self) -> Option<Table> {
        if self.0.lent.xchg(true, Acquire) {
            return None;
        }
        // INVARIANT: No other list has the table, as `lent` was false. The reference is the lent
        // table's.
        let mut table = Table(self.0.table.0);
        table.head_mut().lender = Arc::into_raw(self.0.clone()).cast_mut().cast();
        Some(table)
    }
}
