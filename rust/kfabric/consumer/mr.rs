// SPDX-License-Identifier: GPL-2.0

//! Open memory regions.

use super::{
    call,
    memory::List,
    Backing,
    CloseError,
    Domain,
    RegisterError, //
};
use crate::{
    region::access::Access,
    support::{
        errno::Errno,
        noio::NoIo, //
    }, //
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::sync::{
    atomic::{
        Acquire,
        Atomic, //
    },
    Arc, //
};
use kfi_bindings::kfid_mr;

/// A memory region: memory that a peer which has its key can reach.
///
/// It owns the memory until [`close`](Self::close) gives it back; dropping the region closes it
/// and frees the memory. Both may sleep.
///
/// # Soundness
///
/// A peer may read and write the memory at any time while the region is open, so nobody else may
/// have it, nor a reference into it, and it may not be freed:
///
/// - The region owns the memory, and gives out no reference. Its bytes are copied in and out by
///   volatile accesses; a copy in needs exclusive access to the region, so that only the peer can
///   be in the way of another access.
/// - The memory is somewhere else than this value, and goes on being there however the value is
///   moved. If the value is forgotten, so is what owns the memory, and it is never freed.
/// - The memory is let go only when the provider has said that the region is closed, which it
///   does when no peer can reach it any more. A region that can't be closed yet (`EBUSY`) stays
///   open, for the caller to try again. On drop, and where the device fails to let go of it, the
///   memory is leaked, and the log says so.
/// - The domain has a reference from each region, so that it can't be closed before them, in
///   whatever order the values are dropped.
///
/// # Invariants
///
/// `raw` is an open region of `domain`, registered on `memory` and nothing else; nobody else closes
/// it.
pub struct Mr<B: Backing> {
    raw: NonNull<kfid_mr>,
    memory: ManuallyDrop<B>,
    domain: ManuallyDrop<Arc<Domain>>,
}

// SAFETY: The calls on a region may be made by any thread, and its memory can be sent.
unsafe impl<B: Backing> Send for Mr<B> {}
// SAFETY: What can be done with a shared region is to read it, which changes nothing.
unsafe impl<B: Backing + Sync> Sync for Mr<B> {}

impl<B: Backing> Mr<B> {
    /// Registers memory by `call`. May sleep.
    ///
    /// Whatever the memory allocates to list itself is allocated without I/O, as what the call does.
    pub(super) fn open(
        domain: &Arc<Domain>,
        memory: B,
        access: Access,
        call: impl FnOnce(List<'_>) -> Result<NonNull<kfid_mr>, Errno>,
    ) -> Result<Self, RegisterError<B>> {
        let _noio = NoIo::enter();
        let opened = match memory.fits(domain, access) {
            true => memory.with_list(call),
            false => Err(Errno::EINVAL),
        };
        match opened {
            // INVARIANT: Just registered, on what the memory has listed.
            Ok(raw) => Ok(Self {
                raw,
                memory: ManuallyDrop::new(memory),
                domain: ManuallyDrop::new(domain.clone()),
            }),
            Err(errno @ Errno::ENOTRECOVERABLE) => Err(RegisterError::leaked(errno, memory)),
            Err(errno) => Err(RegisterError::new(errno, memory)),
        }
    }

    /// `kfi_mr_key()`: the key that a peer needs; `u64::MAX` as long as it has none, which regions
    /// of a domain that an event queue is [bound](Domain::bind) to have only when the queue says so.
    pub fn key(&self) -> u64 {
        // What came before the key can be read by who has seen it: base and descriptor.
        // SAFETY: The region is open. The core may be writing the key of a region that is
        // registered asynchronously, which it does atomically.
        unsafe { Atomic::from_ptr(&raw mut (*self.raw.as_ptr()).key) }.load(Acquire)
    }

    /// Where the first byte is for a peer (`kfid_mr.iova`), which goes on counting from there. It is
    /// there as soon as the key is.
    pub fn base(&self) -> u64 {
        // SAFETY: The region is open. The core writes the base before the key.
        unsafe { (&raw const (*self.raw.as_ptr()).iova).read_volatile() }
    }

    /// What the events about it have as their `object`.
    pub fn object(&self) -> usize {
        self.raw.as_ptr().addr()
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Is there nothing in it? No provider registers such a region.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The domain that it is registered in.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The region as C has it, for calls that Rust doesn't know. It's open as long as `self` is
    /// there, and must not be closed.
    pub fn as_raw(&self) -> *mut kfid_mr {
        self.raw.as_ptr()
    }

    /// Copies bytes from `offset` on until `to` is full.
    ///
    /// A peer may be writing meanwhile: then they are those of before or after, or some of each.
    /// Fails with `EINVAL` if there aren't that many.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), Errno> {
        self.memory.read(offset, to)
    }

    /// Copies all bytes of `from` to `offset` and what follows.
    ///
    /// Fails with `EINVAL` if there isn't enough room.
    pub fn write(&mut self, offset: usize, from: &[u8]) -> Result<(), Errno> {
        self.memory.write(offset, from)
    }

    /// Sets all bytes to `value`.
    pub fn fill(&mut self, value: u8) -> Result<(), Errno> {
        self.memory.fill(value)
    }

    /// Compares the bytes from `offset` on with all bytes of `with`: `None` if they are the same,
    /// else the index of the first in `with` that differs.
    ///
    /// Fails with `EINVAL` if there aren't that many.
    pub fn compare(&self, offset: usize, with: &[u8]) -> Result<Option<usize>, Errno> {
        self.memory.compare(offset, with)
    }

    /// `kfi_close()`: closes the region and gives its memory back. May sleep.
    ///
    /// When it returns, no peer can reach the memory. If it fails with `EBUSY`, or with `EOPBADSTATE`
    /// in the handler of an event queue that is still to hear of it, the region is still open, and
    /// comes back with the error. If it fails otherwise, the region is gone, but the
    /// device may still reach its memory, which is leaked.
    pub fn close(self) -> Result<B, CloseError<Self>> {
        let mut region = ManuallyDrop::new(self);
        match region.shut() {
            // SAFETY: Taken once, since `region` is not used any more nor dropped.
            Ok(()) => Ok(unsafe { ManuallyDrop::take(&mut region.memory) }),
            Err(errno) if is_open(errno) => {
                let region = ManuallyDrop::into_inner(region);
                Err(CloseError::new(errno, Some(region)))
            }
            Err(errno) => {
                call::leaked("memory of a region", errno);
                Err(CloseError::new(errno, None))
            }
        }
    }

    /// Closes the region and, unless it is still open, lets the domain go.
    ///
    /// To be called once, unless the region [is open](is_open) then.
    fn shut(&mut self) -> Result<(), Errno> {
        let _noio = NoIo::enter();
        // SAFETY: The region is open by the invariant, and used by nobody else.
        let closed = unsafe { call::close(self.raw.cast()) };
        if !closed.is_err_and(is_open) {
            // SAFETY: Not used any more, as `shut` is not called again.
            unsafe { ManuallyDrop::drop(&mut self.domain) };
        }
        closed
    }
}

/// Is a region still open that couldn't be closed for this reason? It has a counter, or is closed
/// in an event handler.
fn is_open(errno: Errno) -> bool {
    matches!(errno, Errno::EBUSY | Errno::EOPBADSTATE)
}

impl<B: Backing> Drop for Mr<B> {
    fn drop(&mut self) {
        // For what the memory's owner may do when it is dropped.
        let _noio = NoIo::enter();
        match self.shut() {
            // SAFETY: Not used any more, and no peer can reach it.
            Ok(()) => unsafe { ManuallyDrop::drop(&mut self.memory) },
            // A peer may still reach the memory, so it stays; and so does the domain of a region
            // that is still open.
            Err(errno) => call::leaked("memory region", errno),
        }
    }
}
