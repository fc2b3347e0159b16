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

/// The entries of a list.
pub(super) enum Table {
    /// Allocated for it.
    Own(Entries),
    /// Lent to it.
    Lent(Lent),
}

impl Table {
    /// Takes what is spare, if that is enough and not in use, or allocates a table. [`EINVAL`] for
    /// no entries. May sleep.
    pub(super) fn get(entries: u32, spare: Option<&SpareTable>) -> Result<Self> {
        match spare.and_then(|spare| spare.lend(entries)) {
            Some(lent) => Ok(Self::Lent(lent)),
            None => Ok(Self::Own(Entries::alloc(entries)?)),
        }
    }

    /// The first entry.
    pub(super) fn as_raw(&self) -> *mut bindings::scatterlist {
        match self {
            Self::Own(entries) => entries.as_raw(),
            Self::Lent(lent) => lent.0.entries.as_raw(),
        }
    }
}

/// A table that is there for one list after the other.
pub struct SpareTable {
    shared: Arc<Shared>,
    count: u32,
}

struct Shared {
    entries: Entries,
    /// A list has it.
    lent: Atomic<bool>,
}

impl SpareTable {
    /// Allocates a table. [`EINVAL`] for no entries. May sleep.
    pub fn alloc(count: u32) -> Result<Self> {
        let shared = Shared {
            entries: Entries::alloc(count)?,
            lent: Atomic::new(false),
        };
        Ok(Self {
            shared: Arc::new(shared, GFP_KERNEL)?,
            count,
        })
    }

    /// Lends it to a list, unless another one has it.
    fn lend(&self, count: u32) -> Option<Lent> {
        if count == 0 || count > self.count || self.shared.lent.xchg(true, Acquire) {
            return None;
        }
        // SAFETY: The table has that many entries, and nobody else has it, as was just found.
        unsafe { rdma_bindings::rdma_helper_sg_reset(self.shared.entries.as_raw(), self.count) };
        Some(Lent(self.shared.clone()))
    }
}

/// A table that was lent, which nobody else has. Dropping it gives it back.
pub(super) struct Lent(Arc<Shared>);

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.lent.store(false, Release);
    }
}

/// An allocated `struct sg_table`.
///
/// # Invariants
///
/// The table has been allocated by `sg_alloc_table()`.
pub(super) struct Entries(bindings::sg_table);

// SAFETY: A table can be freed by any task.
unsafe impl Send for Entries {}

// SAFETY: There is nothing to do with a shared reference but to ask for the pointer.
unsafe impl Sync for Entries {}

impl Entries {
    /// Allocates a table. [`EINVAL`] for no entries.
    fn alloc(entries: u32) -> Result<Self> {
        let mut table = bindings::sg_table::default();
        if entries == 0 {
            return Err(EINVAL);
        }
        // SAFETY: The table is ours, and what was in it doesn't matter.
        to_result(unsafe { bindings::sg_alloc_table(&mut table, entries, bindings::GFP_KERNEL) })?;
        // INVARIANT: Just allocated. A table may be moved: nothing points to it.
        Ok(Self(table))
    }

    fn as_raw(&self) -> *mut bindings::scatterlist {
        self.0.sgl
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the table is allocated. Freeing goes by its size, not by
        // its end mark.
        unsafe { bindings::sg_free_table(&mut self.0) };
    }
}
