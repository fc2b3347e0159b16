// SPDX-License-Identifier: GPL-2.0

//! Memory at this side, for transfers.

use super::{
    Buffer,
    Mr, //
};
use crate::support::errno::Errno;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::c_void,
    sync::Arc, //
};

/// Memory that a [`Request`](super::Request) can own: a [`Buffer`], or an [`MrPart`].
///
/// # Safety
///
/// - The `size` bytes at the address that `at` gives are kernel memory and initialized. The core, a
///   provider and a device may read and write them, at any time until the value is dropped.
/// - They stay allocated, and where they are, until then: moving the value doesn't matter, and forgetting
///   it keeps them for good.
/// - `at` always gives the same until something else is done to the value, and makes no reference to the
///   bytes.
/// - `desc` is null, or the descriptor of a region that has all of the bytes, and is open for as long.
pub unsafe trait Local: Send + 'static {
    /// The address of the first byte, and how many there are.
    fn at(&self) -> (NonNull<u8>, usize);

    /// `kfi_mr_desc()` of the region that the bytes are in, or null.
    fn desc(&self) -> *mut c_void {
        ptr::null_mut()
    }
}

// SAFETY: By the promises of `Buffer`, for memory that belongs to the value alone.
unsafe impl<B: Buffer> Local for B {
    fn at(&self) -> (NonNull<u8>, usize) {
        (self.start(), self.size())
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
    fn at(&self) -> (NonNull<u8>, usize) {
        let start = self.mr.memory().start();
        // SAFETY: By the invariant, these are some of the memory's bytes.
        (unsafe { start.add(self.offset) }, self.len)
    }

    fn desc(&self) -> *mut c_void {
        self.mr.desc()
    }
}
