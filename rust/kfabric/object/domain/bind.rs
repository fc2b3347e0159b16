// SPDX-License-Identifier: GPL-2.0

//! `kfi_domain_bind()`: the event queue that registrations report to.

use super::{
    object,
    DomainObject, //
};
use crate::{
    object::eq::{
        self,
        bound::BoundEq, //
    },
    support::{
        errno::Errno,
        noio::NoIo,
        refusal::Refusal, //
    }, //
};
use core::ptr;
use kernel::ffi::c_int;
use kfi_bindings::{
    kfid,
    KFI_REG_MR, //
};

/// The `bind` slot of a domain. May sleep.
///
/// # Safety
///
/// As the C API demands: `fid` is an open domain, `other` null or an open object.
pub(super) unsafe extern "C" fn bind(fid: *mut kfid, other: *mut kfid, flags: u64) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: As the C API demands.
    let bound = unsafe { object(fid).and_then(|domain| bind_to(domain, other, flags)) };
    bound.map_or_else(Refusal::report, |()| 0)
}

/// # Safety
///
/// `other` is null or an open object.
unsafe fn bind_to(domain: &DomainObject, other: *mut kfid, flags: u64) -> Result<(), Refusal> {
    if other.is_null() {
        return Err(Refusal::new(Errno::EINVAL, c"nothing to bind"));
    }
    // SAFETY: By the requirements of this function.
    let eq = unsafe { eq::object(other) }?;
    if flags != KFI_REG_MR {
        return Err(Refusal::new(Errno::EBADFLAGS, c"only KFI_REG_MR is known").value(flags));
    }
    if !ptr::eq(eq.fabric(), domain.fabric()) {
        return Err(Refusal::new(
            Errno::EINVAL,
            c"an event queue of another fabric",
        ));
    }
    if domain.set_eq(BoundEq::new(eq)?) {
        Ok(())
    } else {
        Err(Refusal::new(
            Errno::EINVAL,
            c"the domain has an event queue already",
        ))
    }
}
