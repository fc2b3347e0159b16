// SPDX-License-Identifier: GPL-2.0

//! Memory at this side, for transfers.

use super::{
    Buffer,
    Mr,
    Pieces,
    Run, //
};
use crate::support::errno::Errno;
use core::ptr;
use kernel::sync::Arc;

/// Memory that a [`Request`](super::Request) can own: a [`Buffer`], an [`MrPart`], a [`LocalList`](super::LocalList)
/// of these, [`Pages`](super::Pages) or a [`BioVecList`](super::BioVecList).
///
/// # Safety
///
/// - The `bytes` bytes that `run` or `add_to` tells of are memory of this machine. The core, a provider and a
///   device may read and write them at any time until the value is dropped; but not read them if `may_be_read`
///   says `false`, nor write them if `may_be_written` does. What may be read is initialized.
/// - They stay allocated, and where they are, until then: moving the value doesn't matter, and forgetting
///   it keeps them for good.
/// - All functions always tell the same until something else is done to the value, and make no reference to the
///   bytes.
/// - A descriptor is null, or that of a region that has all of the run, and is open for as long.
pub unsafe trait Local: Send + 'static {
    /// How many bytes there are.
    fn bytes(&self) -> usize;

    /// Where they are, if they follow each other.
    fn run(&self) -> Option<Run>;

    /// Adds to a list where they are, in their order. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: they can't be in such a list.
    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.run().map_or(Ok(()), |run| list.push(run))
    }

    /// May a transfer read them?
    fn may_be_read(&self) -> bool {
        true
    }

    /// May a transfer write to them?
    fn may_be_written(&self) -> bool {
        true
    }
}

// SAFETY: By the promises of `Buffer`, for memory that belongs to the value alone.
unsafe impl<B: Buffer> Local for B {
    fn bytes(&self) -> usize {
        self.size()
    }

    fn run(&self) -> Option<Run> {
        Some(Run {
            start: self.start(),
            len: self.size(),
            desc: ptr::null_mut(),
        })
    }
}

/// A part of a region, which it keeps open.
///
/// The bytes are read and written through the region, also while a transfer has them: then it may find
/// some of before and some of after, as with a peer.
///
/// # Invariants
///
/// The region has `len` bytes from `offset` on.
pub struct MrPart<B: Buffer + Sync> {
    mr: Arc<Mr<B>>,
    offset: usize,
    len: usize,
}

impl<B: Buffer + Sync> MrPart<B> {
    /// Takes `len` bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many.
    pub fn new(mr: Arc<Mr<B>>, offset: usize, len: usize) -> Result<Self, Errno> {
        match offset.checked_add(len) {
            // INVARIANT: Just checked.
            Some(end) if end <= mr.len() => Ok(Self { mr, offset, len }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The region.
    pub fn mr(&self) -> &Arc<Mr<B>> {
        &self.mr
    }
}

// SAFETY: The bytes are the region's, and that gives out no reference to them. It stays open, and has
// them, as long as there is a reference to it.
unsafe impl<B: Buffer + Sync> Local for MrPart<B> {
    fn bytes(&self) -> usize {
        self.len
    }

    fn run(&self) -> Option<Run> {
        let start = self.mr.memory().start();
        Some(Run {
            // SAFETY: By the invariant, these are some of the memory's bytes.
            start: unsafe { start.add(self.offset) },
            len: self.len,
            desc: self.mr.desc(),
        })
    }
}
