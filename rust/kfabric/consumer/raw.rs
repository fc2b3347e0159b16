// SPDX-License-Identifier: GPL-2.0

//! Raw keys of local regions, and mapped raw keys of peers' regions.
//!
//! C headers: [`include/kfi_domain.h`](srctree/include/kfi_domain.h),
//! [`include/kfi_raw_ext.h`](srctree/include/kfi_raw_ext.h)

use super::{
    call::{
        self,
        op, //
    },
    Backing,
    Domain,
    Mr, //
};
use crate::{
    object::ext::raw,
    prelude::*,
    region::rawkey::{
        raw_key_size,
        RemotePiece, //
    }, //
};
use core::ptr;
use kfi_bindings::{
    kfi_mr_map_raw,
    kfi_mr_raw_attr,
    kfi_raw_ops,
    kfi_rma_iov,
    KFI_GET_RAW_MR,
    KFI_MAP_RAW_MR,
    KFI_UNMAP_KEY, //
};

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
            let mut attr = kfi_mr_raw_attr {
                flags: 0,
                base_addr: &mut base,
                raw_key: bytes.as_mut_ptr(),
                key_size: &mut size,
            };
            let arg = ptr::from_mut(&mut attr).cast();
            // SAFETY: The region is open. `attr` and all pointers in it are valid for the call.
            match unsafe { call::control(self.as_raw().cast(), KFI_GET_RAW_MR, arg) } {
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
        let mut map = kfi_mr_map_raw {
            flags: 0,
            base_addr: base,
            // The call only reads it.
            raw_key: raw_key.as_ptr().cast_mut(),
            key_size: raw_key.len(),
            key: &mut key,
        };
        // SAFETY: The domain is open. `map` and all pointers in it are valid for the call.
        unsafe { call::control(self.fid(), KFI_MAP_RAW_MR, ptr::from_mut(&mut map).cast()) }?;
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
        let ops = self.domain.extension(raw::NAME)?.cast::<kfi_raw_ops>();
        let mut room = 1;
        loop {
            let mut parts: KVVec<kfi_rma_iov> = KVVec::with_capacity(room, GFP_KERNEL)?;
            for _ in 0..room {
                parts.push(pin_init::zeroed(), GFP_KERNEL)?;
            }
            let mut count = room;
            // SAFETY: The domain is open, and keeps the table valid. `parts` has `count` entries.
            let resolved = call::result(unsafe {
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

fn pieces<'a>(parts: impl Iterator<Item = &'a kfi_rma_iov>) -> Result<KVVec<RemotePiece>, Errno> {
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
        let unmapped = unsafe { call::control(self.domain.fid(), KFI_UNMAP_KEY, key) };
        if let Err(errno) = unmapped {
            call::leaked("mapped key", errno);
        }
    }
}
