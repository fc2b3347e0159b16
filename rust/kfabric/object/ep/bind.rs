// SPDX-License-Identifier: GPL-2.0

//! Binds of an endpoint: `kfi_ep_bind()`.

use super::{
    msg::{
        EpPhase,
        Msg, //
    },
    srx::SrxBody,
    EndpointBody,
    EndpointObject, //
};
use crate::{
    object::{
        binding::{
            Binds,
            Other, //
        },
        cntr::CounterBody,
        cq::{
            CqBinding,
            CqBody, //
        },
        eq::EqBody, //
    },
    prelude::*, //
};
use kernel::sync::SetOnce;
use kfi_bindings as c;

const TRANSMIT: u64 = widen_u32(c::KFI_TRANSMIT);
const RECV: u64 = widen_u32(c::KFI_RECV);
const READ: u64 = widen_u32(c::KFI_READ);
const WRITE: u64 = widen_u32(c::KFI_WRITE);
const SELECTIVE: u64 = c::KFI_SELECTIVE_COMPLETION;

/// Returns the refusal of a second binding for one purpose.
fn twice() -> Refusal {
    Refusal::new(Errno::EINVAL, c"something is bound for that already")
}

/// Fills each place whose flag is set with a binding of `bind`, or none if one of them is filled.
fn set_all<T>(
    places: &[(&SetOnce<T>, u64)],
    flags: u64,
    bind: impl Fn() -> Result<T, Refusal>,
) -> Result<(), Refusal> {
    let wanted = || places.iter().filter(|(_, flag)| flags & flag != 0);
    if wanted().any(|(place, _)| place.as_ref().is_some()) {
        return Err(twice());
    }
    for (place, _) in wanted() {
        if !place.populate(bind()?) {
            return Err(twice());
        }
    }
    Ok(())
}

/// Binds an object to a connected endpoint. May sleep.
fn bind(ep: &EndpointObject, msg: &Msg, other: Other<'_>) -> Result<(), Refusal> {
    // The lock makes sure that the provider hears of successful binds only.
    let _alone = msg.preparing();
    if msg.phase.get() != EpPhase::New {
        let refusal = Refusal::new(Errno::EOPBADSTATE, c"the endpoint is enabled");
        return Err(refusal);
    }
    let bound = &msg.bound;
    let domain = ep.parent();
    if let Ok(eq) = other.object::<EqBody>() {
        let eq = other.bind(domain.parent(), eq, 0)?;
        return match bound.eq.populate(eq) {
            true => Ok(()),
            false => Err(twice()),
        };
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
        if !msg.shares {
            let why = c"the endpoint was not opened with KFI_SHARED_CONTEXT";
            return Err(Refusal::new(Errno::EINVAL, why));
        }
        let srx = other.bind(domain, srx, 0)?;
        if bound.srx.as_ref().is_some() {
            return Err(twice());
        }
        msg.imp.share(&*srx.get().imp)?;
        return match bound.srx.populate(srx) {
            true => Ok(()),
            false => Err(twice()),
        };
    }
    if let Ok(counter) = other.object::<CounterBody>() {
        let flags = other.flags_of(TRANSMIT | RECV | READ | WRITE, 0)?;
        if msg.shares && flags & RECV != 0 {
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
        match ep.msg() {
            Some(msg) => bind(ep, msg, other),
            None => Err(Refusal::new(Errno::ENOSYS, c"endpoints transfer nothing")),
        }
    }
}
