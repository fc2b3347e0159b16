// SPDX-License-Identifier: GPL-2.0

//! Open memory regions, their raw keys, and mapped raw keys of peers' regions.
//!
//! C headers: [`include/kfi_domain.h`](srctree/include/kfi_domain.h),
//! [`include/kfi_raw_ext.h`](srctree/include/kfi_raw_ext.h)

use super::{
    error::{
        leaked,
        unfit, //
    },
    memory::MemoryList,
    *, //
};
use crate::{
    object::ext::RAW_NAME,
    region::rawkey::raw_key_size, //
};
use kernel::sync::atomic::Acquire;

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
            let why = c"memory of another domain, or not for these rights";
            Err(unfit(c"register", why))
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

/// The raw key of a region, which a peer needs to access it.
pub struct RawKey {
    base: u64,
    bytes: KVVec<u8>,
}

impl RawKey {
    /// Returns the address of the region's first byte for a peer. A peer needs it together with the
    /// raw key.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the bytes of the raw key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<B: Backing> Mr<B> {
    /// Returns the region's raw key: `kfi_mr_raw_attr()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the registration is not complete, or the region is not enabled.
    /// - `ENOMEM`.
    pub fn raw_key(&self) -> Result<RawKey, Errno> {
        let _noio = NoIo::enter();
        let mut room = raw_key_size(1);
        loop {
            let (mut base, mut size) = (0, room);
            let mut bytes = KVVec::from_elem(0, room, GFP_KERNEL)?;
            let mut attr = c::kfi_mr_raw_attr {
                flags: 0,
                base_addr: &mut base,
                raw_key: bytes.as_mut_ptr(),
                key_size: &mut size,
            };
            let arg = ptr::from_mut(&mut attr).cast();
            // SAFETY: The region is open. `attr` and all pointers in it are valid for the call.
            match unsafe { handle::control(self.as_raw().cast(), c::KFI_GET_RAW_MR, arg) } {
                Ok(()) if size <= room => {
                    bytes.truncate(size);
                    return Ok(RawKey { base, bytes });
                }
                Err(Errno::ETOOSMALL) if size > room => room = size,
                // The provider contradicts itself.
                Ok(()) | Err(Errno::ETOOSMALL) => return Err(Errno::EIO),
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// A peer's raw key that is mapped in a domain. Dropping it unmaps the key, and may sleep.
///
/// # Invariants
///
/// `key` is mapped in the domain, and nobody else unmaps it.
pub struct MappedKey {
    key: u64,
    domain: Arc<Domain>,
}

impl Domain {
    /// Maps a peer's raw key in this domain: `kfi_mr_map_raw()`. May sleep.
    ///
    /// Addresses of accesses start at `base`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the raw key is malformed. A wrong key is only detected by an access to the
    ///   peer's memory.
    /// - `ENOMEM`.
    pub fn map_raw(self: &Arc<Self>, base: u64, raw_key: &[u8]) -> Result<MappedKey, Errno> {
        let mut key = 0;
        let mut map = c::kfi_mr_map_raw {
            flags: 0,
            base_addr: base,
            // The call only reads it.
            raw_key: raw_key.as_ptr().cast_mut(),
            key_size: raw_key.len(),
            key: &mut key,
        };
        // SAFETY: The domain is open. `map` and all pointers in it are valid for the call.
        unsafe {
            handle::control(
                self.fid(),
                c::KFI_MAP_RAW_MR,
                ptr::from_mut(&mut map).cast(),
            )
        }?;
        // INVARIANT: The call mapped the key.
        Ok(MappedKey {
            key,
            domain: self.clone(),
        })
    }
}

impl MappedKey {
    /// Returns the key for accesses in the domain.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Returns the domain.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Returns the pieces of the peer's memory for an access at `addr`, in order. Each has the key
    /// that the peer's device knows. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the access is empty, or not completely inside the region.
    /// - `ENOMEM`.
    pub fn resolve(&self, addr: u64, len: u64) -> Result<KVVec<RemotePiece>, Errno> {
        let _noio = NoIo::enter();
        let ops = self.domain.extension(RAW_NAME)?.cast::<c::kfi_raw_ops>();
        let mut room = 1;
        loop {
            let mut parts: KVVec<c::kfi_rma_iov> = KVVec::with_capacity(room, GFP_KERNEL)?;
            for _ in 0..room {
                parts.push(pin_init::zeroed(), GFP_KERNEL)?;
            }
            let mut count = room;
            // SAFETY: The domain is open, and keeps the table valid. `parts` has `count` entries.
            let resolved = handle::result(unsafe {
                op!(
                    ops.as_ptr(),
                    resolve(
                        self.domain.fid(),
                        self.key,
                        addr,
                        len,
                        parts.as_mut_ptr(),
                        &mut count
                    )
                )
            }?);
            match resolved {
                Ok(()) if count <= room => return pieces(parts.iter().take(count)),
                Err(Errno::ETOOSMALL) if count > room => room = count,
                // The provider contradicts itself.
                Ok(()) | Err(Errno::ETOOSMALL) => return Err(Errno::EIO),
                Err(errno) => return Err(errno),
            }
        }
    }
}

fn pieces<'a>(
    parts: impl Iterator<Item = &'a c::kfi_rma_iov>,
) -> Result<KVVec<RemotePiece>, Errno> {
    let mut pieces = KVVec::new();
    for part in parts {
        let piece = RemotePiece {
            key: part.key,
            base: part.addr,
            len: widen(part.len),
        };
        pieces.push(piece, GFP_KERNEL)?;
    }
    Ok(pieces)
}

impl Drop for MappedKey {
    fn drop(&mut self) {
        let key = ptr::from_mut(&mut self.key).cast();
        // SAFETY: The domain is open, and the key is mapped by the invariant. `key` points to a
        // field.
        let unmapped = unsafe { handle::control(self.domain.fid(), c::KFI_UNMAP_KEY, key) };
        if let Err(errno) = unmapped {
            leaked("mapped key", errno);
        }
    }
}
