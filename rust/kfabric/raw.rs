// SPDX-License-Identifier: GPL-2.0

//! The calls about raw keys: commands of regions and domains, and the extension `kfi_raw_ops_v1`.
//!
//! C headers: [`include/kfi_domain.h`](srctree/include/kfi_domain.h),
//! [`include/kfi_raw_ext.h`](srctree/include/kfi_raw_ext.h)

mod mapped;

pub use mapped::MappedKeys;

use crate::{
    domain::{
        self,
        DomainObject, //
    },
    errno::Errno,
    noio::NoIo,
    num::{
        c_str,
        widen, //
    },
    rawkey::{
        self,
        RemotePiece, //
    },
    refusal::Refusal,
    table::Table, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr, //
};
use kfi_bindings::{
    kfi_mr_map_raw,
    kfi_mr_raw_attr,
    kfi_raw_ops,
    kfi_rma_iov,
    kfid, //
};

pub(crate) const NAME: &CStr = c_str(kfi_bindings::KFI_RAW_OPS_1);

pub(crate) static OPS: Table<kfi_raw_ops> = Table(kfi_raw_ops {
    size: size_of::<kfi_raw_ops>(),
    resolve: Some(resolve),
});

fn no_flags(flags: u64) -> Result<(), Refusal> {
    match flags {
        0 => Ok(()),
        _ => Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(flags)),
    }
}

const NULL: Refusal = Refusal::new(Errno::EINVAL, c"an argument is NULL");

/// The argument of `KFI_GET_RAW_MR`, where the raw key of a region goes.
///
/// # Invariants
///
/// `raw_key` has room for so many bytes, if `room` is not 0.
pub(crate) struct RawAttr<'a> {
    base_addr: &'a mut u64,
    raw_key: *mut u8,
    room: usize,
    size: &'a mut usize,
}

impl RawAttr<'_> {
    /// Takes it from C.
    ///
    /// # Safety
    ///
    /// As the C API demands: `arg` is null or a `struct kfi_mr_raw_attr`, and its pointers are null
    /// or valid, until this is dropped.
    pub(crate) unsafe fn from_raw(arg: *mut c_void) -> Result<Self, Refusal> {
        // SAFETY: By the requirements of this function.
        let attr = unsafe { arg.cast::<kfi_mr_raw_attr>().as_ref() }.ok_or(NULL)?;
        no_flags(attr.flags)?;
        // SAFETY: As above.
        let (size, base_addr) = unsafe { (attr.key_size.as_mut(), attr.base_addr.as_mut()) };
        let (size, base_addr) = (size.ok_or(NULL)?, base_addr.ok_or(NULL)?);
        if *size != 0 && attr.raw_key.is_null() {
            return Err(NULL);
        }
        // INVARIANT: By the requirements of this function.
        Ok(Self {
            base_addr,
            raw_key: attr.raw_key,
            room: *size,
            size,
        })
    }

    /// Writes the raw key of a region with this base address and these pieces. Sleeps.
    pub(crate) fn put(self, base: u64, pieces: &[RemotePiece]) -> Result<(), Refusal> {
        *self.size = rawkey::raw_key_size(pieces.len());
        if self.room < *self.size {
            let refusal = Refusal::new(Errno::ETOOSMALL, c"raw key is longer");
            return Err(refusal.value(widen(*self.size)));
        }
        let raw = rawkey::encode(pieces)?;
        *self.base_addr = base;
        // SAFETY: By the invariant; that there is enough room was just checked.
        unsafe {
            self.raw_key
                .copy_from_nonoverlapping(raw.as_ptr(), raw.len())
        };
        Ok(())
    }
}

/// Copies a raw key from C before it's judged, so that nobody who writes there meanwhile, a peer
/// for instance, is believed twice.
///
/// # Safety
///
/// `raw` is valid for `len` bytes.
unsafe fn copy(raw: *const u8, len: usize) -> Result<KVVec<u8>, Refusal> {
    let mut copy = KVVec::from_elem(0, len, GFP_KERNEL)?;
    // SAFETY: By the requirements of this function; the copy was just made that long.
    unsafe { raw.copy_to_nonoverlapping(copy.as_mut_ptr(), len) };
    Ok(copy)
}

/// `KFI_MAP_RAW_MR`: makes a peer's raw key usable in a domain. Sleeps.
///
/// # Safety
///
/// As the C API demands: `arg` is null or a `struct kfi_mr_map_raw`, and its pointers are null or
/// valid.
pub(crate) unsafe fn map(domain: &DomainObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: By the requirements of this function.
    let map = unsafe { arg.cast::<kfi_mr_map_raw>().as_ref() }.ok_or(NULL)?;
    // SAFETY: As above.
    let key = unsafe { map.key.as_mut() }.ok_or(NULL)?;
    *key = widen(kfi_bindings::KFI_KEY_NOTAVAIL);
    no_flags(map.flags)?;
    if map.raw_key.is_null() {
        return Err(NULL);
    }
    let longest = domain.longest_raw_key();
    if map.key_size > longest {
        let refusal = Refusal::new(Errno::EINVAL, c"raw key is longer than mr_key_size");
        return Err(refusal.value(widen(map.key_size)));
    }
    // SAFETY: As the C API demands.
    let raw = unsafe { copy(map.raw_key, map.key_size) }?;
    let child = domain.add_child()?;
    *key = domain.keys().map(map.base_addr, rawkey::parse(&raw)?)?;
    child.keep();
    Ok(())
}

/// `KFI_UNMAP_KEY`: gives back what [`map`] gave. May sleep.
///
/// # Safety
///
/// As the C API demands: `arg` is null or a `u64`.
pub(crate) unsafe fn unmap(domain: &DomainObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: By the requirements of this function.
    let key = unsafe { arg.cast::<u64>().as_ref() }.ok_or(NULL)?;
    domain.keys().unmap(*key)?;
    domain.remove_child();
    Ok(())
}

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
        domain::object(fid).and_then(|domain| split(domain, key, (addr, len), iov, count))
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
    let count = unsafe { count.as_mut() }.ok_or(NULL)?;
    if *count != 0 && iov.is_null() {
        return Err(NULL);
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
