// SPDX-License-Identifier: GPL-2.0

//! Open memory regions.

use super::{
    error::unfit,
    handle::Handle,
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
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, Domain};
///
/// /// Lets a peer write, and returns what it has written.
/// fn receive(domain: &Arc<Domain>, tell: impl Fn(u64, u64)) -> Result<KVec<u8>> {
///     let bytes = KVec::from_elem(0, 4096, GFP_KERNEL)?;
///     let mr = domain.reg(bytes, Access::REMOTE_WRITE)?;
///     tell(mr.base(), mr.key());
///     let mut first = [0; 8];
///     mr.read(0, &mut first)?;
///     // From here on the key is refused.
///     Ok(mr.close()?)
/// }
/// ```
///
/// # Invariants
///
/// The region was registered on what is lent to it, and nothing else.
pub struct Mr<B: Backing>(Handle<kfid_mr, Arc<Domain>, B>);

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
        let opened = if memory.fits(domain, access) {
            memory.with_list(call)
        } else {
            Err(unfit(c"memory of another domain, or not for these rights"))
        };
        match opened {
            // SAFETY: Just registered, on what the memory has listed.
            Ok(raw) => Ok(unsafe { Self::registered(raw, domain, memory) }),
            Err(errno @ Errno::ENOTRECOVERABLE) => Err(RegisterError::leaked(errno, memory)),
            Err(errno) => Err(RegisterError::new(errno, memory)),
        }
    }

    /// A region that was just registered on this memory. Any context.
    ///
    /// # Safety
    ///
    /// It was, in this domain, and nobody else closes it.
    pub(super) unsafe fn registered(
        raw: NonNull<kfid_mr>,
        domain: &Arc<Domain>,
        memory: B,
    ) -> Self {
        // INVARIANT: By the requirements of this function.
        Self(Handle::new(raw, domain.clone(), memory))
    }

    /// As [`close`](Self::close), after that was tried, and has ended so. May sleep.
    ///
    /// # Safety
    ///
    /// It was.
    pub(super) unsafe fn closed(self, closed: Result<(), Errno>) -> Result<B, CloseError<Self>> {
        // SAFETY: By the requirements of this function; nobody else has the handle.
        unsafe { self.0.closed(closed) }.map_err(|error| error.map(Self))
    }

    /// The memory, after the region was closed. Any context, as long as others have the domain.
    ///
    /// # Safety
    ///
    /// It was.
    pub(super) unsafe fn into_memory(self) -> B {
        // SAFETY: By the requirements of this function; nobody else has the handle.
        unsafe { self.0.into_lent() }
    }

    /// `kfi_mr_key()`: returns the key that a peer needs; `u64::MAX` as long as there is none. In a
    /// domain that an event queue is [bound](Domain::bind) to, there is one when the queue says so.
    /// Any context.
    pub fn key(&self) -> u64 {
        // What came before the key can be read by who has seen it: base and descriptor.
        // SAFETY: `as_raw` is open as long as `self` is there. The core may be writing the key of a
        // region that is registered asynchronously, which it does atomically.
        unsafe { Atomic::from_ptr(&raw mut (*self.as_raw()).key) }.load(Acquire)
    }

    /// Returns where the first byte is for a peer (`kfid_mr.iova`), which goes on counting from
    /// there. It is there as soon as the key is. Any context.
    pub fn base(&self) -> u64 {
        // SAFETY: `as_raw` is open as long as `self` is there. The core writes the base before the
        // key.
        unsafe { (&raw const (*self.as_raw()).iova).read_volatile() }
    }

    /// Returns what the events about it have as their `object`. Any context.
    pub fn object(&self) -> usize {
        self.as_raw().addr()
    }

    /// Returns how many bytes it has. Any context.
    pub fn len(&self) -> usize {
        self.0.lent().len()
    }

    /// Is there nothing in it? No provider registers such a region. Any context.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the domain that it is registered in. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.0.parent()
    }

    /// Returns the region as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed. Any context.
    pub fn as_raw(&self) -> *mut kfid_mr {
        self.0.as_ptr()
    }

    /// `kfi_mr_desc()`: returns what transfers at this side name the region by. Any context.
    pub(super) fn desc(&self) -> *mut c_void {
        // SAFETY: `as_raw` is open as long as `self` is there. The core writes it before the key.
        unsafe { (&raw const (*self.as_raw()).mem_desc).read_volatile() }
    }

    /// Returns the memory, which peers may be using. Any context.
    pub(super) fn memory(&self) -> &B {
        self.0.lent()
    }

    /// Copies bytes from `offset` on until `to` is full.
    ///
    /// A peer may be writing meanwhile: then they are those of before or after, or some of each.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), Errno> {
        self.0.lent().read(offset, to)
    }

    /// Copies all bytes of `from` to `offset` and what follows.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there isn't enough room.
    pub fn write(&mut self, offset: usize, from: &[u8]) -> Result<(), Errno> {
        self.0.lent_mut().write(offset, from)
    }

    /// Sets all bytes to `value`.
    pub fn fill(&mut self, value: u8) -> Result<(), Errno> {
        self.0.lent_mut().fill(value)
    }

    /// Compares the bytes from `offset` on with all bytes of `with`.
    ///
    /// Returns `None` if they are the same, else the index of the first in `with` that differs.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many.
    pub fn compare(&self, offset: usize, with: &[u8]) -> Result<Option<usize>, Errno> {
        self.0.lent().compare(offset, with)
    }

    /// `kfi_close()`: closes the region and gives its memory back. May sleep.
    ///
    /// When it returns, no peer can reach the memory.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: a counter is bound to it; it is still open, and comes back.
    /// - `EOPBADSTATE`: in the handler of an event queue that is still to hear of it; it is still
    ///   open, and comes back.
    /// - Others: the region is gone, but the device may still reach its memory, which is leaked.
    pub fn close(self) -> Result<B, CloseError<Self>> {
        self.0.close().map_err(|error| error.map(Self))
    }
}
