// SPDX-License-Identifier: GPL-2.0

//! `kfi_mr_bind()`: counters and endpoints.

use super::{
    object,
    MrObject, //
};
use crate::{
    object::{
        cntr,
        domain::DomainObject,
        ep, //
    },
    support::{
        errno::Errno,
        noio::NoIo,
        num::widen_u32,
        refusal::Refusal, //
    }, //
};
use core::ptr;
use kernel::ffi::c_int;
use kfi_bindings::{
    kfid,
    KFI_MR_ENDPOINT,
    KFI_REMOTE_WRITE,
    KFI_RMA_EVENT, //
};

/// The `bind` slot of a region. May sleep.
///
/// # Safety
///
/// As the C API demands: `fid` is an open region, `other` null or an open object.
pub(super) unsafe extern "C" fn bind(fid: *mut kfid, other: *mut kfid, flags: u64) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: As the C API demands.
    let bound = unsafe { object(fid).and_then(|mr| bind_to(mr, other, flags)) };
    bound.map_or_else(Refusal::report, |()| 0)
}

/// # Safety
///
/// `other` is null or an open object.
unsafe fn bind_to(mr: &MrObject, other: *mut kfid, flags: u64) -> Result<(), Refusal> {
    if other.is_null() {
        return Err(Refusal::new(Errno::EINVAL, c"nothing to bind"));
    }
    let domain = mr.domain();
    let counters = domain.mr_limits().flags & KFI_RMA_EVENT != 0;
    if !counters && !domain.has_mode(KFI_MR_ENDPOINT) {
        return Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't report accesses to a region",
        ));
    }
    // SAFETY: By the requirements of this function.
    if let Ok(counter) = unsafe { cntr::object(other) } {
        if !counters {
            return Err(Refusal::new(
                Errno::ENOSYS,
                c"the provider can't count accesses to a region",
            ));
        }
        check_flags(flags, widen_u32(KFI_REMOTE_WRITE))?;
        check_domain(domain, counter.domain())?;
        return mr
            .inner
            .lock()
            .state
            .bind_counter(counter.counter().clone());
    }
    // SAFETY: As above.
    if let Ok(endpoint) = unsafe { ep::object(other) } {
        check_flags(flags, 0)?;
        check_domain(domain, endpoint.domain())?;
        return mr
            .inner
            .lock()
            .state
            .bind_endpoint(endpoint.endpoint().clone());
    }
    Err(Refusal::new(
        Errno::EINVAL,
        c"neither a counter nor an endpoint",
    ))
}

fn check_flags(flags: u64, wanted: u64) -> Result<(), Refusal> {
    match flags == wanted {
        true => Ok(()),
        false => {
            Err(Refusal::new(Errno::EBADFLAGS, c"not the flags of such a binding").value(flags))
        }
    }
}

fn check_domain(own: &DomainObject, other: &DomainObject) -> Result<(), Refusal> {
    match ptr::eq(own, other) {
        true => Ok(()),
        false => Err(Refusal::new(Errno::EINVAL, c"an object of another domain")),
    }
}
