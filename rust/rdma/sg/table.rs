// SPDX-License-Identifier: GPL-2.0

//! The memory of scatterlists.

use kernel::{
    bindings,
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    }, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

/// What lists are allocated from. To be dropped when there are none any more, which sleeps.
pub struct Caches(());

impl Caches {
    /// Makes them. [`ENOMEM`] without memory for that. May sleep.
    ///
    /// # Safety
    ///
    /// To be called once, before any list is made.
    pub unsafe fn new() -> Result<Self> {
        // SAFETY: By the requirements of this function.
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

/// The entries of a list. It grows while it is filled.
pub(super) enum Table {
    /// Allocated for it.
    Own(Chunks),
    /// Lent to it.
    Lent(Lent),
}

impl Table {
    /// Takes what is spare, if that is not in use, or allocates a table for about so many entries;
    /// more generously if it is there for a moment only. May sleep.
    pub(super) fn get(expected: u32, brief: bool, spare: Option<&SpareTable>) -> Result<Self> {
        match spare.and_then(SpareTable::lend) {
            Some(lent) => Ok(Self::Lent(lent)),
            None => Ok(Self::Own(Chunks::begin(expected, brief)?)),
        }
    }

    /// The first chunk.
    pub(super) fn as_raw(&self) -> *mut rdma_bindings::rdma_helper_sg_chunk {
        match self {
            Self::Own(chunks) => chunks.0.as_ptr(),
            Self::Lent(lent) => lent.0.chunks.0.as_ptr(),
        }
    }

    /// The first entry.
    pub(super) fn first(&self) -> *mut bindings::scatterlist {
        // SAFETY: The first chunk is there, by the invariant of `Chunks`.
        unsafe { (&raw mut (*self.as_raw()).entries).cast() }
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
    /// Allocates a table that a list of so many entries fits into; a longer one grows. May sleep.
    pub fn alloc(count: u32) -> Result<Self> {
        let shared = Shared {
            chunks: Chunks::alloc(count)?,
            lent: Atomic::new(false),
        };
        Ok(Self {
            shared: Arc::new(shared, GFP_KERNEL)?,
        })
    }

    /// Lends it to a list, unless another one has it.
    fn lend(&self) -> Option<Lent> {
        if self.shared.lent.xchg(true, Acquire) {
            return None;
        }
        // INVARIANT: Nobody else has it, as was just found.
        Some(Lent(self.shared.clone()))
    }
}

/// A table that was lent. Dropping it gives it back.
///
/// # Invariants
///
/// Nobody else has it.
pub(super) struct Lent(Arc<Shared>);

impl Drop for Lent {
    fn drop(&mut self) {
        let first = self.0.chunks.0.as_ptr();
        // SAFETY: The first chunk is there, by the invariant of `Chunks`, and nobody else's. Those
        // that follow it are of the list that is gone, and not reached any more.
        unsafe {
            rdma_bindings::rdma_helper_sg_free((*first).next);
            (*first).next = null_mut();
        }
        self.0.lent.store(false, Release);
    }
}

/// Allocated chunks of entries.
///
/// # Invariants
///
/// The first chunk was allocated by the helpers, and so was each that follows.
pub(super) struct Chunks(NonNull<rdma_bindings::rdma_helper_sg_chunk>);

// SAFETY: Chunks can be freed by any task.
unsafe impl Send for Chunks {}

// SAFETY: There is nothing to do with a shared reference but to ask for the pointer.
unsafe impl Sync for Chunks {}

impl Chunks {
    /// Allocates a chunk for so many entries. May sleep.
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

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: By the type invariant all chunks are allocated; nobody uses them any more.
        unsafe { rdma_bindings::rdma_helper_sg_free(self.0.as_ptr()) };
    }
}
