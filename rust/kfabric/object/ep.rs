// SPDX-License-Identifier: GPL-2.0

//! Endpoints.
//!
//! An endpoint is of one of two kinds:
//!
//! - A connected endpoint of the provider ([`MsgEp`](crate::provider::msg_ep::MsgEpOps)) transfers data.
//! - A bare endpoint of the core ([`DomainOps::endpoints`]) transfers no data. Regions are bound to it.
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
mod transfer;

pub(crate) use self::cm::private_data;

use self::msg::Msg;
use super::{
    binding::Bindable,
    children::Child,
    closing::Close,
    domain::DomainBody,
    endpoint_mrs::EndpointMrs,
    obj::{
        Class,
        Obj, //
    }, //
};
use crate::{
    prelude::*,
    provider::{
        ep::EpCore,
        DomainOps, //
    },
    support::table::NO_SUCH_CALL, //
};
use kfi_bindings::kfid;

/// The class of endpoints.
static EP: Class = Class::new(
    kfi_bindings::KFI_CLASS_EP,
    c"not an endpoint",
    c"an endpoint is open in it",
);

/// An open endpoint.
pub(crate) type EndpointObject = Obj<EndpointBody>;

/// The core's part of an endpoint.
pub(crate) struct EndpointBody {
    endpoint: Arc<EpCore>,
    /// The regions that are bound to the endpoint.
    ties: Arc<EndpointMrs>,
    /// The part of a connected endpoint.
    msg: Option<Msg>,
}

impl EndpointBody {
    /// Returns the endpoint that regions are bound to.
    pub(crate) fn endpoint(&self) -> &Arc<EpCore> {
        &self.endpoint
    }

    fn msg(&self) -> Option<&Msg> {
        self.msg.as_ref()
    }

    /// Returns the connected part.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the endpoint transfers no data.
    fn transferring(&self) -> Result<&Msg, Refusal> {
        self.msg.as_ref().ok_or(NO_SUCH_CALL)
    }

    /// Enables the endpoint, so that peers can access the bound regions. May sleep.
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
    type Bound = Arc<EndpointMrs>;

    fn bound(object: &EndpointObject) -> Result<Arc<EndpointMrs>, Refusal> {
        Ok(object.ties.clone())
    }
}

impl Close for EndpointBody {
    /// Closes the endpoint. Sleeps until all transfers and all accesses of peers have ended. After that, no
    /// peer can access its regions.
    fn close(&self) -> Result<(), Refusal> {
        if let Some(msg) = &self.msg {
            msg.close();
        }
        self.endpoint.close();
        self.ties.close();
        Ok(())
    }
}

/// Returns the endpoint behind a fid, for extensions of a provider. `None` if it is another object.
///
/// # Safety
///
/// `fid` is null or an open object.
pub unsafe fn from_fid(fid: *mut kfid) -> Option<Arc<EpCore>> {
    // SAFETY: `fid` is null or an object that is open for the call.
    let object = unsafe { EndpointObject::from_fid(fid) }.ok()?;
    Some(object.endpoint().clone())
}

/// Returns the provider's domain of an endpoint, for extensions of a provider. `None` if the domain's type is
/// not `D`.
///
/// # Safety
///
/// `fid` is null or an object that stays open for `'a`.
pub unsafe fn domain_of<'a, D: DomainOps>(fid: *mut kfid) -> Option<&'a D> {
    // SAFETY: `fid` is null or an object that stays open for `'a`.
    let object = unsafe { EndpointObject::from_fid(fid) }.ok()?;
    object.parent().provider().as_any().downcast_ref()
}
