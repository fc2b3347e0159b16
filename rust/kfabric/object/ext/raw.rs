// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_raw_ops_v1`: splitting an access by a mapped raw key.
//!
//! C header: [`include/kfi_raw_ext.h`](srctree/include/kfi_raw_ext.h)

use crate::{
    object::{
        domain::DomainObject,
        ep::EndpointObject, //
    },
    prelude::*,
    region::rawkey::RemotePiece,
    support::{
        num::c_str,
        table::Table, //
    }, //
};
use kfi_bindings::{
    kfi_raw_ops,
    kfi_rma_iov, //
};

pub(crate) const NAME: &CStr = c_str(kfi_bindings::KFI_RAW_OPS_1);

pub(crate) static OPS: Table<kfi_raw_ops> = Table(kfi_raw_ops {
    size: size_of::<kfi_raw_ops>(),
    resolve: Some(resolve),
});

/// Splits an access by a mapped key: the `resolve` slot. May sleep.
///
/// # Safety
///
/// - `fid` is null or an open object.
/// - `count` is null or valid for reads and writes.
/// - `iov` is null or valid for writes of `*count` entries.
unsafe extern "C" fn resolve(
    fid: *mut kfid,
    key: u64,
    addr: u64,
    len: u64,
    iov: *mut kfi_rma_iov,
    count: *mut usize,
) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is null or an open object. `count` is null or valid, and `iov` null or valid for `*count` entries.
    let resolved = unsafe {
        DomainObject::from_fid(fid).and_then(|domain| split(domain, key, (addr, len), iov, count))
    };
    resolved.map_or_else(Refusal::report, |()| 0)
}

/// Splits an access by a mapped key.
///
/// # Safety
///
/// - `count` is null or valid for reads and writes.
/// - `iov` is null or valid for writes of `*count` entries.
unsafe fn split(
    domain: &DomainObject,
    key: u64,
    (addr, len): (u64, u64),
    iov: *mut kfi_rma_iov,
    count: *mut usize,
) -> Result<(), Refusal> {
    // SAFETY: `count` is null or valid for reads and writes.
    let count = unsafe { count.as_mut() }.ok_or(Refusal::NULL)?;
    if *count != 0 && iov.is_null() {
        return Err(Refusal::NULL);
    }
    let mapped = domain.keys.get(key)?;
    let resolved = mapped.resolve(addr, len)?;
    let room = core::mem::replace(count, resolved.count());
    if room < *count {
        let refusal = Refusal::new(Errno::ETOOSMALL, c"access is split into more parts");
        return Err(refusal.value(widen(*count)));
    }
    for (index, part) in resolved.parts().enumerate() {
        let part = kfi_rma_iov {
            addr: part.base,
            len: usize::try_from(part.len).map_err(|_| Errno::EINVAL)?,
            key: part.key,
        };
        // SAFETY: `iov` isn't null, and valid for `room` entries, which is at least the number of parts.
        unsafe { iov.add(index).write(part) };
    }
    Ok(())
}

/// The raw keys that are mapped in a domain, for providers with their own transfers.
pub struct MappedKeys<'a>(&'a DomainObject);

impl MappedKeys<'_> {
    /// Returns the mapped keys of the domain behind a fid, or of the domain of an endpoint.
    ///
    /// # Safety
    ///
    /// `fid` is null or an object that stays open until the result is dropped.
    pub unsafe fn of(fid: *mut kfid) -> Option<Self> {
        // SAFETY: `fid` is null or an object that stays open until the result is dropped.
        unsafe {
            match DomainObject::from_fid(fid) {
                Ok(domain) => Some(Self(domain)),
                Err(_) => EndpointObject::from_fid(fid)
                    .ok()
                    .map(|ep| Self(ep.parent())),
            }
        }
    }

    /// Splits an access by a mapped key, in order. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOKEY`: the key isn't mapped.
    /// - `EINVAL`: the access is not inside the region.
    pub fn resolve(&self, key: u64, addr: u64, len: u64) -> Result<KVVec<RemotePiece>, Refusal> {
        let mapped = self.0.keys.get(key)?;
        let resolved = mapped.resolve(addr, len)?;
        let mut parts = KVVec::with_capacity(resolved.count(), GFP_KERNEL)?;
        for part in resolved.parts() {
            parts.push(part, GFP_KERNEL)?;
        }
        Ok(parts)
    }
}
