// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_raw_ops_v1`: what an access by a mapped raw key is split into.
//!
//! C header: [`include/kfi_raw_ext.h`](srctree/include/kfi_raw_ext.h)
//!
//! Mapped raw keys as a provider sees them that transfers by them itself.

use crate::{
    object::{
        domain::DomainObject,
        ep::EndpointObject, //
    },
    region::rawkey::RemotePiece,
    support::{
        errno::Errno,
        num::{
            c_str,
            widen, //
        },
        refusal::Refusal,
        table::Table,
        task::NoIo, //
    }, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    str::CStr, //
};
use kfi_bindings::{
    kfi_raw_ops,
    kfi_rma_iov,
    kfid, //
};

pub(crate) const NAME: &CStr = c_str(kfi_bindings::KFI_RAW_OPS_1);

pub(crate) static OPS: Table<kfi_raw_ops> = Table(kfi_raw_ops {
    size: size_of::<kfi_raw_ops>(),
    resolve: Some(resolve),
});

/// The slot `resolve`. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn resolve(
    fid: *mut kfid,
    key: u64,
    addr: u64,
    len: u64,
    iov: *mut kfi_rma_iov,
    count: *mut usize,
) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: As the C API demands.
    let resolved = unsafe {
        DomainObject::from_fid(fid).and_then(|domain| split(domain, key, (addr, len), iov, count))
    };
    resolved.map_or_else(Refusal::report, |()| 0)
}

/// Splits an access by a mapped key.
///
/// # Safety
///
/// `count` is null or valid; `iov` is null or has room for so many.
unsafe fn split(
    domain: &DomainObject,
    key: u64,
    (addr, len): (u64, u64),
    iov: *mut kfi_rma_iov,
    count: *mut usize,
) -> Result<(), Refusal> {
    // SAFETY: By the requirements of this function.
    let count = unsafe { count.as_mut() }.ok_or(Refusal::NULL)?;
    if *count != 0 && iov.is_null() {
        return Err(Refusal::NULL);
    }
    let mapped = domain.keys().get(key)?;
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
        // SAFETY: By the requirements of this function, there is room for all parts.
        unsafe { iov.add(index).write(part) };
    }
    Ok(())
}

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
