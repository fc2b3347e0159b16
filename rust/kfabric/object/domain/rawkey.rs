// SPDX-License-Identifier: GPL-2.0

//! The raw keys of peers that are usable in a domain: mapping them, and taking them back.
//!
//! C header: [`include/kfi_domain.h`](srctree/include/kfi_domain.h)

use super::DomainObject;
use crate::{
    region::rawkey,
    support::{
        errno::Errno,
        num::widen,
        refusal::{
            no_flags,
            Refusal, //
        }, //
    }, //
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};
use kfi_bindings::kfi_mr_map_raw;

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
pub(super) unsafe fn map(domain: &DomainObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: By the requirements of this function.
    let map = unsafe { arg.cast::<kfi_mr_map_raw>().as_ref() }.ok_or(Refusal::NULL)?;
    // SAFETY: `map.key` is null or valid by the requirements of this function.
    let key = unsafe { map.key.as_mut() }.ok_or(Refusal::NULL)?;
    *key = widen(kfi_bindings::KFI_KEY_NOTAVAIL);
    no_flags(map.flags)?;
    if map.raw_key.is_null() {
        return Err(Refusal::NULL);
    }
    let longest = domain.longest_raw_key();
    if map.key_size > longest {
        let refusal = Refusal::new(Errno::EINVAL, c"raw key is longer than mr_key_size");
        return Err(refusal.value(widen(map.key_size)));
    }
    // SAFETY: As the C API demands.
    let raw = unsafe { copy(map.raw_key, map.key_size) }?;
    let counted = domain.count()?;
    *key = domain.keys().map(map.base_addr, rawkey::parse(&raw)?)?;
    counted.keep();
    Ok(())
}

/// `KFI_UNMAP_KEY`: gives back what [`map`] gave. May sleep.
///
/// # Safety
///
/// As the C API demands: `arg` is null or a `u64`.
pub(super) unsafe fn unmap(domain: &DomainObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: By the requirements of this function.
    let key = unsafe { arg.cast::<u64>().as_ref() }.ok_or(Refusal::NULL)?;
    domain.keys().unmap(*key)?;
    domain.count_off();
    Ok(())
}
