// SPDX-License-Identifier: GPL-2.0

//! The endpoint as C has it.
//!
//! The core's own, on the domains of providers that say so ([`Domain::endpoints`]). Nothing is
//! transferred by it: it is there for regions to be bound to.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

mod attr;
pub(crate) mod open;
mod ops;

use super::{
    domain::DomainObject,
    fid::{
        self,
        Class, //
    }, //
};
use crate::{
    provider::{
        ep::Endpoint,
        Domain, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use kfi_bindings::{
    kfid,
    kfid_ep, //
};

/// The class of endpoints.
static EP: Class = Class::new(kfi_bindings::KFI_CLASS_EP);

/// A `struct kfid_ep` and what the core keeps with it.
///
/// # Invariants
///
/// `c.fid` is what C points to; `domain` stays open, since it counts this endpoint as a child.
#[repr(C)]
pub(crate) struct EndpointObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_ep>,
    endpoint: Arc<Endpoint>,
    domain: NonNull<DomainObject>,
}

impl EndpointObject {
    /// What regions are bound to.
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// The domain that it was opened in.
    pub(crate) fn domain(&self) -> &DomainObject {
        // SAFETY: Open by the invariant.
        unsafe { self.domain.as_ref() }
    }
}

/// Closes an endpoint: no peer gets through it to its regions any more. Sleeps until those who are
/// on their way have come back.
///
/// # Safety
///
/// `fid` is an open endpoint of this core that is used by nobody else any more.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    // SAFETY: `fid` is the first field of the object that `open` gave out.
    let object = unsafe { KBox::from_raw(fid.cast::<EndpointObject>()) };
    object.endpoint.close();
    let domain = object.domain;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the domain until here.
    unsafe { domain.as_ref() }.remove_child();
    0
}

/// The endpoint behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a EndpointObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::is_of(fid, &EP) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<EndpointObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not an endpoint")),
    }
}

/// The endpoint behind a fid, if it is one of the core's. For a provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object.
pub unsafe fn from_fid(fid: *mut kfid) -> Option<Arc<Endpoint>> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { object(fid) }.ok()?;
    Some(object.endpoint().clone())
}

/// The provider's domain that an endpoint was opened in, if it is one of type `D`. For a
/// provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub unsafe fn domain_of<'a, D: Domain>(fid: *mut kfid) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { object(fid) }.ok()?;
    object.domain().provider().as_any().downcast_ref()
}
