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
    binding::{
        Bindable,
        Binds,
        Other, //
    },
    closing::Close,
    domain::DomainBody,
    fid::Class,
    obj::Obj,
    place::Child, //
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
use kernel::sync::Arc;
use kfi_bindings::kfid;

/// The class of endpoints.
static EP: Class = Class::new(
    kfi_bindings::KFI_CLASS_EP,
    c"not an endpoint",
    c"an endpoint is open in it",
);

/// An endpoint as C has it.
pub(crate) type EndpointObject = Obj<EndpointBody>;

/// What the core keeps with an endpoint.
pub(crate) struct EndpointBody {
    endpoint: Arc<Endpoint>,
}

impl EndpointBody {
    /// What regions are bound to.
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }
}

impl Child for EndpointBody {
    type Parent = DomainBody;
}

impl Bindable for EndpointBody {
    type Bound = Arc<Endpoint>;

    fn bound(object: &EndpointObject) -> Result<Arc<Endpoint>, Refusal> {
        Ok(object.endpoint.clone())
    }
}

impl Binds for EndpointBody {
    fn bind(_endpoint: &EndpointObject, _other: Other<'_>) -> Result<(), Refusal> {
        // There is nothing to report to anybody.
        Err(Refusal::new(Errno::ENOSYS, c"endpoints transfer nothing"))
    }
}

impl Close for EndpointBody {
    /// No peer gets through it to its regions any more. Waits for those who are on their way.
    fn close(&self) -> Result<(), Refusal> {
        self.endpoint.close();
        Ok(())
    }
}

/// The endpoint behind a fid, if it is one of the core's. For a provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object.
pub unsafe fn from_fid(fid: *mut kfid) -> Option<Arc<Endpoint>> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { EndpointObject::from_fid(fid) }.ok()?;
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
    let object = unsafe { EndpointObject::from_fid(fid) }.ok()?;
    object.parent().provider().as_any().downcast_ref()
}
