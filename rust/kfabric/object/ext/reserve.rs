// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_reserve_ops_v1`: a reserve for registrations under memory pressure.
//!
//! C header: [`include/kfi_reserve_ext.h`](srctree/include/kfi_reserve_ext.h)
//!
//! Lock order: `RESERVING` is outside of all locks of a provider.

use crate::{
    object::{
        domain::DomainObject,
        mr::parts::Reserve, //
    },
    prelude::*,
    support::{
        num::c_str,
        table::Table, //
    }, //
};
use kfi_bindings::{
    kfi_reserve_ops,
    kfid, //
};

kernel::sync::global_lock! {
    // SAFETY: The module calls `init` before any other function of this file.
    unsafe(uninit) static RESERVING: Mutex<()> = ();
}

/// Initializes the lock.
///
/// # Safety
///
/// The caller calls this once, before any other function of this file.
pub(crate) unsafe fn init() {
    // SAFETY: This is the only call, before any use of the lock.
    unsafe { RESERVING.init() };
}

pub(crate) const NAME: &CStr = c_str(kfi_bindings::KFI_RESERVE_OPS_1);

pub(crate) static OPS: Table<kfi_reserve_ops> = Table(kfi_reserve_ops {
    size: size_of::<kfi_reserve_ops>(),
    reserve: Some(reserve),
});

/// Allocates the reserve of a domain: the `reserve` slot. May sleep.
///
/// # Safety
///
/// `fid` is null or an open object.
unsafe extern "C" fn reserve(fid: *mut kfid, count: usize, pages: usize) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is null or an open object.
    let domain = unsafe { DomainObject::from_fid(fid) };
    let reserved = domain.and_then(|domain| of(domain, count, pages));
    reserved.map_or_else(Refusal::report, |()| 0)
}

fn of(domain: &DomainObject, count: usize, pages: usize) -> Result<(), Refusal> {
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
