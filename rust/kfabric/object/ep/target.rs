// SPDX-License-Identifier: GPL-2.0

//! What a transfer is posted on: an endpoint, or a receive context that endpoints share.

use super::{
    msg::{
        Msg,
        OpFlags,
        Phase, //
    },
    srx::SrxObject,
    EndpointObject, //
};
use crate::{
    object::{
        cq::Reports,
        domain::DomainObject, //
    },
    post::op::Op,
    provider::{
        cntr::Counter,
        cq::Context,
        msg_ep::{
            MsgLimits,
            Post,
            Refused, //
        }, //
    },
    support::{
        errno::Errno,
        refusal::Refusal,
        table::NO_SUCH_CALL, //
    }, //
};
use kernel::sync::Arc;
use kfi_bindings::kfid;

/// What a transfer is posted on.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// An endpoint that transfers something.
    Endpoint(&'a EndpointObject, &'a Msg),
    /// What endpoints share, for receives.
    Shared(&'a SrxObject),
}

impl<'a> Target<'a> {
    /// What is behind a fid. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: neither.
    /// - `ENOSYS`: an endpoint that transfers nothing.
    ///
    /// # Safety
    ///
    /// `fid` is null or an open object, ours or another's; this is not used after it was closed.
    pub(super) unsafe fn find(fid: *mut kfid) -> Result<Self, Refusal> {
        // SAFETY: By the requirements of this function.
        if let Ok(srx) = unsafe { SrxObject::from_fid(fid) } {
            return Ok(Self::Shared(srx));
        }
        // SAFETY: As above.
        Self::endpoint(unsafe { EndpointObject::from_fid(fid) }?)
    }

    /// An endpoint. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: it transfers nothing.
    pub(super) fn endpoint(endpoint: &'a EndpointObject) -> Result<Self, Refusal> {
        Ok(Self::Endpoint(endpoint, endpoint.transferring()?))
    }

    /// Looks whether it takes a receive now, or something else.
    pub(super) fn check(&self, receives: bool) -> Result<(), Refusal> {
        match self {
            Self::Shared(_) if !receives => Err(NO_SUCH_CALL),
            Self::Shared(srx) if srx.reports().is_none() => {
                let why = c"no completion queue is bound for receives";
                Err(Refusal::new(Errno::ENOCQ, why))
            }
            Self::Shared(_) => Ok(()),
            Self::Endpoint(_, msg) if receives && msg.shares() => Err(Refusal::new(
                Errno::EOPNOTSUPP,
                c"receives are posted on the context that the endpoint shares",
            )),
            Self::Endpoint(_, msg) => match msg.phase().get() {
                Phase::Connected => Ok(()),
                Phase::Enabled | Phase::Connecting if receives => Ok(()),
                phase => Err(phase.refusal()),
            },
        }
    }

    pub(super) fn limits(&self) -> &'a MsgLimits {
        match *self {
            Self::Endpoint(_, msg) => msg.limits(),
            Self::Shared(srx) => srx.limits(),
        }
    }

    /// How transfers are done whose call has no flags.
    pub(super) fn op_flags(&self) -> OpFlags {
        match self {
            Self::Endpoint(_, msg) => msg.op_flags(),
            Self::Shared(srx) => OpFlags {
                transmit: 0,
                receive: srx.op_flags(),
            },
        }
    }

    /// The domain that it is in.
    pub(super) fn domain(&self) -> &'a DomainObject {
        match *self {
            Self::Endpoint(endpoint, _) => endpoint.parent(),
            Self::Shared(srx) => srx.parent(),
        }
    }

    /// The queue that a transfer reports to.
    pub(super) fn reports(&self, op: &Op) -> Option<&'a Reports> {
        match *self {
            Self::Endpoint(_, msg) => msg.bound().reports(op),
            Self::Shared(srx) => srx.reports(),
        }
    }

    /// The counter that counts a transfer.
    pub(super) fn counter(&self, op: &Op) -> Option<&'a Arc<Counter>> {
        match *self {
            Self::Endpoint(_, msg) => msg.bound().counter(op),
            Self::Shared(srx) => srx.counter.as_ref(),
        }
    }

    /// Gives a transfer to the provider. Any context.
    pub(super) fn post(&self, post: Post<'_>) -> Result<(), Refused> {
        match self {
            Self::Endpoint(_, msg) => msg.imp().post(post),
            Self::Shared(srx) => srx.imp().post(post),
        }
    }

    /// For how many more transfers like this there is room. Any context.
    pub(super) fn left(&self, op: &Op) -> Result<usize, Refusal> {
        let own = match (self, op) {
            (Self::Endpoint(_, msg), Op::Receive) => msg.enabled()?.imp().room().receives,
            (Self::Endpoint(_, msg), _) => msg.enabled()?.imp().room().sends,
            (Self::Shared(srx), Op::Receive) => srx.imp().room(),
            (Self::Shared(_), _) => return Err(NO_SUCH_CALL),
        };
        let reports = self.reports(op);
        Ok(reports.map_or(own, |to| own.min(to.cq.left())))
    }

    /// Ends a receive that no message has come for. Any context.
    pub(super) fn cancel(&self, context: Context) -> Result<(), Refusal> {
        match self {
            Self::Endpoint(_, msg) => msg.imp().cancel(context),
            Self::Shared(srx) => srx.imp().cancel(context),
        }
    }
}
