// SPDX-License-Identifier: GPL-2.0

//! `kfi_domain_bind()`: the event queue that registrations report to.

use super::{
    object,
    DomainObject, //
};
use crate::{
    eq::{
        self,
        EqObject, //
    },
    errno::Errno,
    noio::NoIo,
    refusal::Refusal, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::ffi::c_int;
use kfi_bindings::{
    kfid,
    KFI_REG_MR, //
};

/// The event queue of a domain, bound as long as this lives.
///
/// # Invariants
///
/// The queue is open, since it counts this as a user.
pub(super) struct BoundEq(NonNull<EqObject>);

// SAFETY: An event queue may be used by any thread.
unsafe impl Send for BoundEq {}
// SAFETY: As above.
unsafe impl Sync for BoundEq {}

impl BoundEq {
    pub(super) fn get(&self) -> &EqObject {
        // SAFETY: Open by the invariant.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for BoundEq {
    fn drop(&mut self) {
        self.get().unbind();
    }
}

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
    // SAFETY: Open by the invariant of the domain.
    if !ptr::eq(eq.fabric(), unsafe { domain.fabric.as_ref() }) {
        return Err(Refusal::new(
            Errno::EINVAL,
            c"an event queue of another fabric",
        ));
    }
    eq.bind()?;
    // INVARIANT: Just counted.
    match domain.eq.populate(BoundEq(NonNull::from(eq))) {
        true => Ok(()),
        false => Err(Refusal::new(
            Errno::EINVAL,
            c"the domain has an event queue already",
        )),
    }
}
