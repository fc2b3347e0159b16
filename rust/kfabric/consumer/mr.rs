// SPDX-License-Identifier: GPL-2.0

//! Open memory regions.

use super::{
    error::unfit,
    handle::Handle,
    memory::MemoryList,
    Backing,
    CloseError,
    Domain,
    RegisterError, //
};
use crate::{
    region::access::Access,
    support::{
        errno::Errno,
        task::NoIo, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_void,
    sync::{
        atomic::{
            Acquire,
            Atomic, //
        },
        Arc, //
    }, //
};
use kfi_bindings::kfid_mr;

/// A memory region: memory that a peer with its key can reach.
///
/// The region owns the memory until [`close`](Self::close) returns it. Dropping the region closes
/// it and frees the memory. Both may sleep.
///
/// # Soundness
///
/// While the region is open, a peer may read and write the memory at any time. So nobody else may
/// own it, have a reference into it, or free it:
///
/// - The region owns the memory, and creates no reference into it. It copies bytes by volatile
///   accesses. Writing needs exclusive access to the region, so that no other access but the peer's
///   conflicts.
/// - The memory isn't part of this value, so moving the value has no effect on it. Forgetting the
///   value leaks the memory.
/// - The memory is returned or freed only after the provider has closed the region, when no peer
///   can reach it. If the region can't be closed yet (`EBUSY`), it stays open, and the caller may
///   try again. On drop, or if the device may still access the memory, it is leaked, and the log
///   says so.
/// - The region has a reference to the domain. So the domain is closed last, in whatever order the
///   values are dropped.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, Domain};
///
/// /// Lets a peer write, and returns the bytes that it wrote.
/// fn receive(domain: &Arc<Domain>, tell: impl Fn(u64, u64)) -> Result<KVec<u8>> {
///     let bytes = KVec::from_elem(0, 4096, GFP_KERNEL)?;
///     let mr = domain.reg(bytes, Access::REMOTE_WRITE)?;
///     tell(mr.base(), mr.key());
///     let mut first = [0; 8];
///     mr.read(0, &mut first)?;
///     // Once this returns, the device refuses the key.
///     Ok(mr.close()?)
/// }
/// ```
///
/// # Invariants
///
/// The region was registered on the memory in the handle, and nothing else.
pub struct Mr<B: Backing>(Handle<kfid_mr, Arc<Domain>, B>);

impl<B: Backing> Mr<B> {
    /// Registers memory by `call`. May sleep, but not for I/O.
    pub(super) fn open(
        domain: &Arc<Domain>,
        memory: B,
        access: Access,
        call: impl FnOnce(MemoryList<'_>) -> Result<NonNull<kfid_mr>, Errno>,
    ) -> Result<Self, RegisterError<B>> {
        let _noio = NoIo::enter();
        let opened = if memory.fits(domain, access) {
            memory.with_list(call)
        } else {
            Err(unfit(c"memory of another domain, or not for these rights"))
        };
        match opened {
            // SAFETY: `call` just registered the region on the list of the memory. Nobody else
            // closes it.
            Ok(raw) => Ok(unsafe { Self::registered(raw, domain, memory) }),
            Err(errno @ Errno::ENOTRECOVERABLE) => Err(RegisterError::leaked(errno, memory)),
            Err(errno) => Err(RegisterError::new(errno, memory)),
        }
    }

    /// Creates the value of a region that was just registered on this memory. Any context.
    ///
    /// # Safety
    ///
    /// `raw` was registered on `memory` in `domain`, and nobody else closes it.
    pub(super) unsafe fn registered(
        raw: NonNull<kfid_mr>,
        domain: &Arc<Domain>,
        memory: B,
    ) -> Self {
        // INVARIANT: `raw` was registered on `memory` by this function's contract.
        Self(Handle::new(raw, domain.clone(), memory))
    }

    /// Handles the result of an attempt to close the region, like [`close`](Self::close). May
    /// sleep.
    ///
    /// # Safety
    ///
    /// `closed` is the result of closing this region.
    pub(super) unsafe fn closed(self, closed: Result<(), Errno>) -> Result<B, CloseError<Self>> {
        // SAFETY: `closed` is the result of closing the object, and `self` owns its only handle.
        unsafe { self.0.closed(closed) }.map_err(|error| error.map(Self))
    }

    /// Returns the memory of a closed region. Any context, if others have references to the domain.
    ///
    /// # Safety
    ///
    /// The region is closed.
    pub(super) unsafe fn into_memory(self) -> B {
        // SAFETY: The object is closed by this function's contract, and `self` owns its only
        // handle.
        unsafe { self.0.into_lent() }
    }

    /// Returns the key for a peer, or `u64::MAX` before the region has one: `kfi_mr_key()`. Any
    /// context.
    ///
    /// If an event queue is [bound](Domain::bind) to the domain, the region has a key once the
    /// queue has its event.
    pub fn key(&self) -> u64 {
        // Acquire: the core writes the base and the descriptor before the key.
        // SAFETY: The object is open as long as `self`. The core writes the key of a region that is
        // registered asynchronously by an atomic store.
        unsafe { Atomic::from_ptr(&raw mut (*self.as_raw()).key) }.load(Acquire)
    }

    /// Returns the address of the first byte for a peer (`kfid_mr.iova`). It is valid once the
    /// region has a key. Any context.
    pub fn base(&self) -> u64 {
        // SAFETY: The object is open as long as `self`. The core writes the base before the key.
        unsafe { (&raw const (*self.as_raw()).iova).read_volatile() }
    }

    /// Returns the `object` of the region's events. Any context.
    pub fn object(&self) -> usize {
        self.as_raw().addr()
    }

    /// Returns the number of bytes. Any context.
    pub fn len(&self) -> usize {
        self.0.lent().len()
    }

    /// Checks whether there are no bytes. No provider registers that. Any context.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the domain of the region. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.0.parent()
    }

    /// Returns the C object, for calls that Rust doesn't have. It is open as long as `self` lives.
    /// The caller must not close it. Any context.
    pub fn as_raw(&self) -> *mut kfid_mr {
        self.0.as_ptr()
    }

    /// Returns the descriptor for local transfers: `kfi_mr_desc()`. Any context.
    pub(super) fn desc(&self) -> *mut c_void {
        // SAFETY: The object is open as long as `self`. The core writes the descriptor before the
        // key.
        unsafe { (&raw const (*self.as_raw()).mem_desc).read_volatile() }
    }

    /// Returns the memory, which peers may access. Any context.
    pub(super) fn memory(&self) -> &B {
        self.0.lent()
    }

    /// Copies bytes from `offset` into all of `to`.
    ///
    /// If a peer writes at the same time, `to` may have a mixture of old and new bytes.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region is too short.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), Errno> {
        self.0.lent().read(offset, to)
    }

    /// Copies all bytes of `from` to `offset`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region is too short.
    pub fn write(&mut self, offset: usize, from: &[u8]) -> Result<(), Errno> {
        self.0.lent_mut().write(offset, from)
    }

    /// Sets all bytes to `value`.
    pub fn fill(&mut self, value: u8) -> Result<(), Errno> {
        self.0.lent_mut().fill(value)
    }

    /// Compares the bytes from `offset` with all bytes of `with`.
    ///
    /// Returns the index in `with` of the first different byte, or `None` if there is no
    /// difference.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region is too short.
    pub fn compare(&self, offset: usize, with: &[u8]) -> Result<Option<usize>, Errno> {
        self.0.lent().compare(offset, with)
    }

    /// Closes the region and returns its memory, which no peer can reach any more: `kfi_close()`.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, with the region: a counter is bound to it.
    /// - `EOPBADSTATE`, with the region: the caller is the handler of an event queue that hasn't
    ///   reported the region yet.
    /// - Others: the region is closed, but the device may still access its memory, which is leaked.
    pub fn close(self) -> Result<B, CloseError<Self>> {
        self.0.close().map_err(|error| error.map(Self))
    }
}
