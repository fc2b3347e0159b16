// SPDX-License-Identifier: GPL-2.0

//! Endpoints.
//!
//! An endpoint is of one of two kinds:
//!
//! - A connected endpoint of the provider ([`MsgEpOps`](crate::provider::msg_ep::MsgEpOps))
//!   transfers data.
//! - A bare endpoint of the core ([`DomainOps::endpoints`]) transfers no data. Regions are bound to it.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

mod atomic;
mod connection;
mod msg_ep;
mod msg_rma;
pub(crate) mod open;
mod ops;
mod posting;
pub(crate) mod srx;

use self::{
    msg_ep::{
        EpPhase,
        Msg, //
    },
    srx::SrxBody, //
};
use super::{
    cntr::CounterBody,
    cq::{
        CqBinding,
        CqBody, //
    },
    domain::DomainBody,
    endpoint_mrs::EndpointMrs,
    eq::EqBody,
    prelude::*, //
};

pub(crate) use self::ops::private_data;

/// The class of endpoints.
static EP: Class = Class::new(
    c::KFI_CLASS_EP,
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

    /// Returns the connected part.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the endpoint transfers no data.
    fn transferring(&self) -> Result<&Msg, Refusal> {
        self.msg.as_ref().ok_or(NO_SUCH_CALL)
    }

    /// Posts the requests that wait for more. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the endpoint transfers no data.
    /// - `ENOTCONN`: it is not connected.
    pub(crate) fn flush(&self) -> Result<(), Refusal> {
        self.transferring()?.flush()
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
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        if let Some(msg) = &object.msg {
            msg.close();
        }
        object.endpoint.close();
        object.ties.close();
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

const TRANSMIT: u64 = widen_u32(c::KFI_TRANSMIT);
const RECV: u64 = widen_u32(c::KFI_RECV);
const READ: u64 = widen_u32(c::KFI_READ);
const WRITE: u64 = widen_u32(c::KFI_WRITE);
const SELECTIVE: u64 = c::KFI_SELECTIVE_COMPLETION;

/// Fills each place whose flag is set with a binding of `bind`, or none if one of them is filled.
fn set_all<T>(
    places: &[(&SetOnce<T>, u64)],
    flags: u64,
    bind: impl Fn() -> Result<T, Refusal>,
) -> Result<(), Refusal> {
    let wanted = || places.iter().filter(|(_, flag)| flags & flag != 0);
    if wanted().any(|(place, _)| place.as_ref().is_some()) {
        return Err(TWICE);
    }
    for (place, _) in wanted() {
        keep(place, bind()?)?;
    }
    Ok(())
}

/// Binds an object to a connected endpoint. May sleep.
fn bind(ep: &EndpointObject, msg: &Msg, other: Other<'_>) -> Result<(), Refusal> {
    // The lock makes sure that the provider hears of successful binds only.
    let _alone = msg.preparing.lock();
    if msg.phase.get() != EpPhase::New {
        let refusal = Refusal::new(Errno::EOPBADSTATE, c"the endpoint is enabled");
        return Err(refusal);
    }
    let bound = &msg.bound;
    let domain = ep.parent();
    if let Ok(eq) = other.object::<EqBody>() {
        return keep(&bound.eq, other.bind(domain.parent(), eq, 0)?);
    }
    if let Ok(cq) = other.object::<CqBody>() {
        let flags = other.flags_of(TRANSMIT | RECV, SELECTIVE)?;
        let places = [(&bound.transmit, TRANSMIT), (&bound.receive, RECV)];
        return set_all(&places, flags, || {
            Ok(CqBinding {
                cq: other.bind_any(domain, cq)?,
                selective: flags & SELECTIVE != 0,
            })
        });
    }
    if let Ok(srx) = other.object::<SrxBody>() {
        if !msg.init.shares {
            let why = c"the endpoint was not opened with KFI_SHARED_CONTEXT";
            return Err(Refusal::new(Errno::EINVAL, why));
        }
        let srx = other.bind(domain, srx, 0)?;
        if bound.srx.as_ref().is_some() {
            return Err(TWICE);
        }
        msg.imp.share(&*srx.get().imp)?;
        return keep(&bound.srx, srx);
    }
    if let Ok(counter) = other.object::<CounterBody>() {
        let flags = other.flags_of(TRANSMIT | RECV | READ | WRITE, 0)?;
        if msg.init.shares && flags & RECV != 0 {
            let why = c"receives are counted for the context that the endpoint shares";
            return Err(Refusal::new(Errno::EINVAL, why));
        }
        let [send, receive, read, write] = &bound.counters;
        let places = [
            (send, TRANSMIT),
            (receive, RECV),
            (read, READ),
            (write, WRITE),
        ];
        return set_all(&places, flags, || other.bind_any(domain, counter));
    }
    let why =
        c"neither an event queue nor a completion queue, a counter or a shared receive context";
    Err(Refusal::new(Errno::EINVAL, why))
}

impl Binds for EndpointBody {
    /// Binds an object to a connected endpoint. May sleep.
    fn bind(ep: &EndpointObject, other: Other<'_>) -> Result<(), Refusal> {
        match &ep.msg {
            Some(msg) => bind(ep, msg, other),
            None => Err(Refusal::new(Errno::ENOSYS, c"endpoints transfer nothing")),
        }
    }
}
