// SPDX-License-Identifier: GPL-2.0

//! The endpoint as C has it.
//!
//! One of two kinds. Either the provider has connected endpoints, which transfer something
//! ([`MsgEp`](crate::provider::msg_ep::MsgEp)); or it lets the core have some of its own
//! ([`Domain::endpoints`]), by which nothing is transferred: they are there for regions to be bound to.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

mod atomic;
mod bind;
mod cm;
mod msg;
pub(crate) mod open;
mod ops;
mod posting;
pub(crate) mod srx;
mod target;
mod transfer;

pub(crate) use self::cm::private_data;

use self::msg::Msg;
use super::{
    binding::Bindable,
    closing::Close,
    domain::DomainBody,
    fid::Class,
    obj::Obj,
    place::Child,
    ties::Ties, //
};
use crate::{
    provider::{
        ep::Endpoint,
        Domain, //
    },
    support::{
        refusal::Refusal,
        table::NO_SUCH_CALL, //
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
    /// Its regions.
    ties: Arc<Ties>,
    /// What it has if it transfers something.
    msg: Option<Msg>,
}

impl EndpointBody {
    /// What regions are bound to.
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    fn msg(&self) -> Option<&Msg> {
        self.msg.as_ref()
    }

    /// What it has to transfer something.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: it transfers nothing.
    fn transferring(&self) -> Result<&Msg, Refusal> {
        self.msg.as_ref().ok_or(NO_SUCH_CALL)
    }

    /// Has it enabled: what is bound to it can be used. May sleep.
    fn enable(&self) -> Result<(), Refusal> {
        let open = || Ok(self.endpoint.enable()?);
        match &self.msg {
            Some(msg) => msg.enable(open),
            None => open(),
        }
    }
}

impl Child for EndpointBody {
    type Parent = DomainBody;
    const END: Option<fn(&EndpointObject)> = Some(|endpoint| {
        if let Some(msg) = &endpoint.msg {
            msg.device_goes();
        }
    });
}

impl Bindable for EndpointBody {
    type Bound = Arc<Ties>;

    fn bound(object: &EndpointObject) -> Result<Arc<Ties>, Refusal> {
        Ok(object.ties.clone())
    }
}

impl Close for EndpointBody {
    /// No peer gets through it to its regions any more, nor in another way. Waits for those who are on
    /// their way, and until all transfers have ended.
    fn close(&self) -> Result<(), Refusal> {
        if let Some(msg) = &self.msg {
            msg.close();
        }
        self.endpoint.close();
        self.ties.close();
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
