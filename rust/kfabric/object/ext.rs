// SPDX-License-Identifier: GPL-2.0

//! Extensions of a domain, which `kfi_open_ops()` opens. The core's own extensions are:
//!
//! - `kfi_batch_ops_v1`: calls for many regions, and closes that do not wait
//!   ([`include/kfi_batch_ext.h`](srctree/include/kfi_batch_ext.h)).
//! - `kfi_dma_ops_v1`: mapping scatterlists for a domain's device
//!   ([`include/kfi_dma_ext.h`](srctree/include/kfi_dma_ext.h)).
//! - `kfi_raw_ops_v1`: splitting an access by a mapped raw key
//!   ([`include/kfi_raw_ext.h`](srctree/include/kfi_raw_ext.h)).
//! - `kfi_reserve_ops_v1`: a reserve for registrations under memory pressure
//!   ([`include/kfi_reserve_ext.h`](srctree/include/kfi_reserve_ext.h)).
//! - `kfi_reuse_ops_v1`: regions that are filled in any context, see [`reuse`](super::reuse)
//!   ([`include/kfi_reuse_ext.h`](srctree/include/kfi_reuse_ext.h)).
//!
//! Lock order: `RESERVING` is outside of all locks of a provider.

use super::prelude::*;
use crate::{
    object::{
        domain::DomainObject,
        ep::EndpointObject,
        mr::{
            close,
            later,
            many::{
                self,
                Answers, //
            },
            parts::Reserve, //
        },
        reuse::{
            REUSE_NAME,
            REUSE_OPS, //
        }, //
    },
    provider::{
        Dma,
        RawSgl, //
    },
    support::num::c_str, //
};
use kernel::dma::DataDirection;

/// Returns the table with this name. The core's tables precede the provider's.
fn table(domain: &dyn DomainOps, name: &CStr) -> Option<*mut c_void> {
    // A provider must not replace a table of the core, even if the domain doesn't have it.
    if name == DMA_NAME {
        return domain.dma().map(|_| DMA_OPS.as_ptr().cast());
    }
    let core = [
        (BATCH_NAME, BATCH_OPS.as_ptr().cast()),
        (RAW_NAME, RAW_OPS.as_ptr().cast()),
        (RESERVE_NAME, RESERVE_OPS.as_ptr().cast()),
        (REUSE_NAME, REUSE_OPS.as_ptr().cast()),
    ];
    let found = core.into_iter().find(|(known, _)| *known == name);
    match found {
        Some((_, table)) => Some(table),
        None => domain.extensions().iter().find_map(|own| own.table(name)),
    }
}

/// Opens an extension: the `ops_open` slot of a domain. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `name` is null or a string.
/// - `ops` is null or valid for writes.
pub(crate) unsafe extern "C" fn open(
    fid: *mut kfid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: `fid` is an open object. Unless they are null, `ops` is valid for writes and `name` is a string.
    unsafe {
        DomainObject::call(fid, c"ops_open", |domain| {
            if ops.is_null() || name.is_null() {
                let why = c"no name or no output pointer";
                return Err(Refusal::new(Errno::EINVAL, why));
            }
            let name = CStr::from_char_ptr(name);
            *ops = ptr::null_mut();
            no_flags(flags)?;
            let none = Refusal::new(Errno::ENOSYS, c"no extension of that name");
            *ops = table(domain.provider(), name).ok_or(none)?;
            Ok(())
        })
    }
}

pub(crate) const ALL_OR_NONE: u64 = widen_u32(c::KFI_BATCH_ALL_OR_NONE);

pub(crate) const BATCH_NAME: &CStr = c_str(c::KFI_BATCH_OPS_1);

pub(crate) static BATCH_OPS: Table<c::kfi_batch_ops> = Table(c::kfi_batch_ops {
    size: size_of::<c::kfi_batch_ops>(),
    regattr_many: Some(regattr_many),
    close_many: Some(close_many),
    close_later: Some(close_later),
    close_now: Some(close_now),
});

/// Registers regions: the `regattr_many` slot. Sleeps until the device is done.
///
/// # Safety
///
/// - `fid` is null or an open object.
/// - `attrs` is null or has `count` elements, whose pointers are null or valid for the call.
/// - `mrs` and `errs` are null or valid for writes of `count` elements.
unsafe extern "C" fn regattr_many(
    fid: *mut kfid,
    attrs: *const kfi_mr_attr,
    count: usize,
    flags: u64,
    batch_flags: u64,
    mrs: *mut *mut kfid_mr,
    errs: *mut c_int,
) -> c_int {
    let _noio = NoIo::enter();
    let register = || {
        if mrs.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"output pointer is NULL"));
        }
        // SAFETY: `mrs` isn't null, so it is valid for writes of `count` elements. `errs` is null or valid for as many.
        let mut answers = unsafe { Answers::new(mrs, errs, count) };
        if attrs.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"attr is NULL"));
        }
        no_flags(batch_flags & !ALL_OR_NONE)?;
        // SAFETY: `fid` is null or an open object. `attrs` isn't null, so it has `count` elements, whose pointers are
        // null or valid for the call.
        unsafe {
            let domain = DomainObject::from_fid(fid)?;
            let attrs = slice::from_raw_parts(attrs, count);
            many::register(domain, attrs, flags, batch_flags != 0, &mut answers)?;
        }
        Ok(answers.first_error())
    };
    // SAFETY: `fid` is null or an open object.
    unsafe { DomainObject::answer(fid, c"regattr_many", register()) }
}

/// Closes regions: the `close_many` slot. Sleeps until no peer can access the memory of the closed regions.
///
/// # Safety
///
/// - `mrs` is null or has `count` elements. Each is null or an open region that no one else uses.
/// - `errs` is null or valid for writes of `count` elements.
unsafe extern "C" fn close_many(mrs: *const *mut kfid_mr, count: usize, errs: *mut c_int) -> c_int {
    if mrs.is_null() {
        return Refusal::new(Errno::EINVAL, c"mrs is NULL").report(c"close_many");
    }
    // SAFETY: `mrs` isn't null, so it has `count` elements.
    let mrs = unsafe { slice::from_raw_parts(mrs, count) };
    let _noio = NoIo::enter();
    let mut first = 0;
    // SAFETY: Each region is null or open, and `errs` is null or valid for writes of `count` elements.
    unsafe {
        many::close(mrs, |index, ret| {
            if !errs.is_null() {
                errs.add(index).write(ret);
            }
            if first == 0 {
                first = ret;
            }
        });
    }
    first
}

/// Closes a region without waiting: the `close_later` slot. Any context.
///
/// # Safety
///
/// - `mr` is null or an open region that no one else uses.
/// - `closing` is valid, with `done` set, until the core calls `done`.
unsafe extern "C" fn close_later(mr: *mut kfid_mr, closing: *mut c::kfi_closing) {
    // SAFETY: `mr` is null or open and unused by others. `closing` stays valid until the core calls `done`.
    unsafe { later::close_later(mr, closing) };
}

/// Closes a region if that needs no wait: the `close_now` slot. Any context.
///
/// # Safety
///
/// `mr` is null or an open region that no one else uses.
unsafe extern "C" fn close_now(mr: *mut kfid_mr) -> c_int {
    // SAFETY: `mr` is null or an open region that no one else uses.
    unsafe { close::close_now(mr) }
}

pub(crate) const DMA_NAME: &CStr = crate::support::num::c_str(c::KFI_DMA_OPS_1);

pub(crate) static DMA_OPS: Table<c::kfi_dma_ops> = Table(c::kfi_dma_ops {
    size: size_of::<c::kfi_dma_ops>(),
    map_sg: Some(map_sg),
    unmap_sg: Some(unmap_sg),
    sync_sg_for_cpu: Some(sync_sg_for_cpu),
    sync_sg_for_device: Some(sync_sg_for_device),
});

/// Checks the arguments of a call.
///
/// # Safety
///
/// - `fid` is null or an object that stays open for `'a`.
/// - `list` is null or has `entries` entries for `'a`.
unsafe fn arguments<'a>(
    fid: *mut kfid,
    list: *mut scatterlist,
    entries: c_int,
    direction: c::dma_data_direction,
) -> Result<(&'a dyn Dma, RawSgl<'a>, DataDirection), Refusal> {
    // SAFETY: `fid` is null or an object that stays open for `'a`. `list` is null or has `entries` entries.
    let (domain, list) = unsafe {
        (
            DomainObject::from_fid(fid)?,
            RawSgl::from_raw(list, entries),
        )
    };
    let dma = domain.provider().dma().ok_or(Errno::ENOSYS)?;
    let list = list.ok_or(Refusal::new(Errno::EINVAL, c"list is NULL or empty"))?;
    // The enum's Rust type differs between kernels. Its conversion from the kernel crate's type does not.
    let direction = [
        DataDirection::Bidirectional,
        DataDirection::ToDevice,
        DataDirection::FromDevice,
    ]
    .into_iter()
    .find(|&known| c::dma_data_direction::from(known) == direction)
    .ok_or(Refusal::new(Errno::EINVAL, c"no direction for DMA"))?;
    Ok((dma, list, direction))
}

/// Maps a list for the device. Returns the number of mapped entries. May sleep.
///
/// # Safety
///
/// - `fid` is null or an open object.
/// - `list` is null or has `entries` entries.
unsafe extern "C" fn map_sg(
    fid: *mut kfid,
    list: *mut scatterlist,
    entries: c_int,
    direction: c::dma_data_direction,
) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is null or an open object. `list` is null or has `entries` entries.
    let mapped = unsafe { arguments(fid, list, entries, direction) }
        .and_then(|(dma, list, direction)| dma.map(list, direction))
        .and_then(|mapped| match c_int::try_from(mapped) {
            Ok(mapped) if mapped <= entries => Ok(mapped),
            _ => Err(Refusal::new(
                Errno::EIO,
                c"the provider has mapped more than there is",
            )),
        });
    // SAFETY: `fid` is null or an open object.
    unsafe { DomainObject::answer(fid, c"map_sg", mapped) }
}

/// Defines the slots without a return value. They only report bad arguments.
macro_rules! quiet_call {
    ($name:ident, $called:literal, $method:ident) => {
        /// Unmaps or syncs a list. May sleep.
        ///
        /// # Safety
        ///
        /// - `fid` is null or an open object.
        /// - `list` is null or has `entries` entries.
        unsafe extern "C" fn $name(
            fid: *mut kfid,
            list: *mut scatterlist,
            entries: c_int,
            direction: c::dma_data_direction,
        ) {
            let _noio = NoIo::enter();
            // SAFETY: `fid` is null or an open object. `list` is null or has `entries` entries.
            match unsafe { arguments(fid, list, entries, direction) } {
                Ok((dma, list, direction)) => dma.$method(list, direction),
                // SAFETY: `fid` is null or an open object.
                Err(refusal) => unsafe {
                    DomainObject::answer::<c_int>(fid, $called, Err(refusal));
                },
            }
        }
    };
}

quiet_call!(unmap_sg, c"unmap_sg", unmap);
quiet_call!(sync_sg_for_cpu, c"sync_sg_for_cpu", sync_for_cpu);
quiet_call!(sync_sg_for_device, c"sync_sg_for_device", sync_for_device);

pub(crate) const RAW_NAME: &CStr = c_str(c::KFI_RAW_OPS_1);

pub(crate) static RAW_OPS: Table<c::kfi_raw_ops> = Table(c::kfi_raw_ops {
    size: size_of::<c::kfi_raw_ops>(),
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
    iov: *mut c::kfi_rma_iov,
    count: *mut usize,
) -> c_int {
    // SAFETY: `fid` is null or an open object. `count` is null or valid, and `iov` null or valid for `*count` entries.
    unsafe {
        DomainObject::call(fid, c"resolve", |domain| {
            split(domain, key, (addr, len), iov, count)
        })
    }
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
    iov: *mut c::kfi_rma_iov,
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
        let part = c::kfi_rma_iov {
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

kernel::sync::global_lock! {
    // SAFETY: The module calls `init` before a domain is opened.
    unsafe(uninit) static RESERVING: Mutex<()> = ();
}

/// Initializes the lock of reserves.
///
/// # Safety
///
/// The caller calls this once, before a domain is opened.
pub(crate) unsafe fn init() {
    // SAFETY: This is the only call, before any use of the lock.
    unsafe { RESERVING.init() };
}

pub(crate) const RESERVE_NAME: &CStr = c_str(c::KFI_RESERVE_OPS_1);

pub(crate) static RESERVE_OPS: Table<c::kfi_reserve_ops> = Table(c::kfi_reserve_ops {
    size: size_of::<c::kfi_reserve_ops>(),
    reserve: Some(reserve),
});

/// Allocates the reserve of a domain: the `reserve` slot. May sleep.
///
/// # Safety
///
/// `fid` is null or an open object.
unsafe extern "C" fn reserve(fid: *mut kfid, count: usize, pages: usize) -> c_int {
    // SAFETY: `fid` is null or an open object.
    unsafe {
        DomainObject::call(fid, c"reserve", |domain| {
            allocate_reserve(domain, count, pages)
        })
    }
}

fn allocate_reserve(domain: &DomainObject, count: usize, pages: usize) -> Result<(), Refusal> {
    let limits = &domain.mr_limits;
    if count == 0 || pages == 0 {
        return Err(Refusal::new(Errno::EINVAL, c"a reserve of nothing"));
    }
    if widen(pages) > limits.pages {
        return Err(Refusal::new(Errno::E2BIG, c"too many pages").value(widen(pages)));
    }
    if count > limits.regions {
        return Err(Refusal::new(Errno::ENOSPC, c"more than mr_cnt regions").value(widen(count)));
    }
    let busy = Refusal::new(Errno::EBUSY, c"the domain has a reserve");
    // The lock makes sure that the provider gets one request for a domain.
    let _reserving = RESERVING.lock();
    if domain.reserve.as_ref().is_some() {
        return Err(busy);
    }
    let reserve = Reserve::new(domain, count, pages)?;
    match domain.reserve.populate(reserve) {
        true => Ok(()),
        false => Err(busy),
    }
}
