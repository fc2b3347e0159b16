// SPDX-License-Identifier: GPL-2.0

//! The memory of scatterlists.

use crate::prelude::*;

/// The caches for lists. The owner must drop them after the last list, which sleeps.
pub struct Caches(());

impl Caches {
    /// Makes them. [`ENOMEM`] without memory for that. May sleep.
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
        // SAFETY: They were made, and nobody has any of their memory.
        unsafe { rdma_bindings::rdma_helper_sg_exit() };
    }
}

/// The entries of a list, and what there is to be known of it. It grows while it is filled.
///
/// It is one pointer, since lists are moved with what is made of them.
///
/// # Invariants
///
/// It is the first of chunks as those of [`Chunks`], which nobody else has. Its `lender` is null, or a
/// reference to the [`Shared`] that the chunk is lent by.
pub(super) struct Table(NonNull<Chunk>);

type Chunk = rdma_bindings::rdma_helper_sg_chunk;

// SAFETY: Chunks can be freed by any task, and so can be given back.
unsafe impl Send for Table {}

// SAFETY: Shared references only read fields that do not change meanwhile.
unsafe impl Sync for Table {}

impl Table {
    /// Takes the spare table if it is free, or allocates a table for about `expected` entries. A
    /// brief table is larger. May sleep.
    pub(super) fn get(expected: u32, brief: bool, spare: Option<&SpareTable>) -> Result<Self> {
        match spare.and_then(SpareTable::lend) {
            Some(lent) => Ok(lent),
            None => Ok(Self(Chunks::begin(expected, brief)?.into_raw())),
        }
    }

    /// Returns the first chunk.
    pub(super) fn as_raw(&self) -> *mut Chunk {
        self.0.as_ptr()
    }

    /// Returns the state of the list.
    pub(super) fn head(&self) -> &Chunk {
        // SAFETY: The first chunk is there, by the type invariant, and changes by way of an exclusive
        // reference only, but for its entries.
        unsafe { self.0.as_ref() }
    }

    /// Returns the state of the list for changes.
    pub(super) fn head_mut(&mut self) -> &mut Chunk {
        // SAFETY: As for `head()`; nobody else has it.
        unsafe { self.0.as_mut() }
    }

    /// Returns the first entry.
    pub(super) fn first(&self) -> *mut bindings::scatterlist {
        // SAFETY: The first chunk is there, by the type invariant.
        unsafe { (&raw mut (*self.as_raw()).entries).cast() }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let first = self.as_raw();
        let lender = core::mem::replace(&mut self.head_mut().lender, null_mut());
        if lender.is_null() {
            // SAFETY: By the type invariant all chunks are allocated; nobody uses them any more.
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

/// A table that is there for one list after the other.
pub struct SpareTable {
    shared: Arc<Shared>,
}

struct Shared {
    chunks: Chunks,
    /// A list has it.
    lent: Atomic<bool>,
}

impl SpareTable {
    /// Allocates a table for `count` entries. A longer list grows it. May sleep.
    pub fn alloc(count: u32) -> Result<Self> {
        let shared = Shared {
            chunks: Chunks::alloc(count)?,
            lent: Atomic::new(false),
        };
        Ok(Self {
            shared: Arc::new(shared, GFP_KERNEL)?,
        })
    }

    /// Returns whether a list has it. Any context.
    pub fn is_lent(&self) -> bool {
        self.shared.lent.load(Acquire)
    }

    /// Lends it to a list, unless another one has it.
    fn lend(&self) -> Option<Table> {
        if self.shared.lent.xchg(true, Acquire) {
            return None;
        }
        // INVARIANT: Nobody else has it, as was just found; and the reference is the table's.
        let mut table = Table(self.shared.chunks.0);
        table.head_mut().lender = Arc::into_raw(self.shared.clone()).cast_mut().cast();
        Some(table)
    }
}

/// Allocated chunks of entries.
///
/// # Invariants
///
/// The first chunk was allocated by the helpers, and so was each that follows.
pub(super) struct Chunks(NonNull<Chunk>);

// SAFETY: Chunks can be freed by any task.
unsafe impl Send for Chunks {}

// SAFETY: There is nothing to do with a shared reference but to ask for the pointer.
unsafe impl Sync for Chunks {}

impl Chunks {
    /// Allocates a chunk for `entries` entries. May sleep.
    fn alloc(entries: u32) -> Result<Self> {
        // SAFETY: May be called with any number.
        let chunk = unsafe { rdma_bindings::rdma_helper_sg_alloc(entries) };
        // INVARIANT: Just allocated, and nothing follows.
        Ok(Self(NonNull::new(chunk).ok_or(ENOMEM)?))
    }

    /// Allocates a chunk for a list that becomes about so long. May sleep.
    fn begin(expected: u32, brief: bool) -> Result<Self> {
        // SAFETY: May be called with any number.
        let chunk = unsafe { rdma_bindings::rdma_helper_sg_begin(expected, brief) };
        // INVARIANT: Just allocated, and nothing follows.
        Ok(Self(NonNull::new(chunk).ok_or(ENOMEM)?))
    }
}

impl Chunks {
    /// Gives up the first of them.
    fn into_raw(self) -> NonNull<Chunk> {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: By the type invariant all chunks are allocated; nobody uses them any more.
        unsafe { rdma_bindings::rdma_helper_sg_free(self.0.as_ptr()) };
    }
}
