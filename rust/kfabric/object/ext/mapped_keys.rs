// SPDX-License-Identifier: GPL-2.0

//! Mapped raw keys as a provider sees them that transfers by them itself.

use crate::{
    object::{
        domain::DomainObject,
        ep::EndpointObject, //
    },
    region::rawkey::RemotePiece,
    support::refusal::Refusal, //
};
use kernel::prelude::*;
use kfi_bindings::kfid;

/// The raw keys that are mapped in a domain.
pub struct MappedKeys<'a>(&'a DomainObject);

impl MappedKeys<'_> {
    /// Those of the domain behind a fid, or of the endpoint's.
    ///
    /// # Safety
    ///
    /// `fid` is null or an open object; what this gives is not used after it was closed.
    pub unsafe fn of(fid: *mut kfid) -> Option<Self> {
        // SAFETY: By the requirements of this function.
        unsafe {
            match DomainObject::from_fid(fid) {
                Ok(domain) => Some(Self(domain)),
                Err(_) => EndpointObject::from_fid(fid)
                    .ok()
                    .map(|ep| Self(ep.parent())),
            }
        }
    }

    /// What an access by a mapped key is split into, in order. May sleep.
    ///
    /// `ENOKEY` if it isn't mapped, `EINVAL` if the access is not inside the region.
    pub fn resolve(&self, key: u64, addr: u64, len: u64) -> Result<KVVec<RemotePiece>, Refusal> {
        let mapped = self.0.keys().get(key)?;
        let resolved = mapped.resolve(addr, len)?;
        let mut parts = KVVec::with_capacity(resolved.count(), GFP_KERNEL)?;
        for part in resolved.parts() {
            parts.push(part, GFP_KERNEL)?;
        }
        Ok(parts)
    }
}
