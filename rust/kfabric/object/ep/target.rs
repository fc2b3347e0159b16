// SPDX-License-Identifier: GPL-2.0

//! The object that a consumer posts a transfer on: an endpoint or a shared receive context.

use super::{
    msg::{
        EpPhase, //
        Msg,
        OpFlags,
    },
    srx::SrxObject,
    EndpointObject, //
};
use crate::{
    object::{
        cq::CqBinding,
        domain::DomainObject, //
    },
    post::op::Op,
    provider::{
        cntr::CntrCore,
        cq::Context,
        msg_ep::{
            MsgLimits,
            Post,
            PostRefusal, //
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

/// The object that a consumer posts a transfer on.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// A connected endpoint.
    Endpoint(&'a EndpointObject, &'a Msg),
    /// A shared receive context.
    Shared(&'a SrxObject),
}

impl<'a> Target<'a> {
    /// Returns the target behind a fid. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is neither an endpoint nor a shared receive context.
    /// - `ENOSYS`: the endpoint transfers no data.
    ///
    /// # Safety
    ///
    /// `fid` is null or an object, of this core or of another provider, that stays open for `'a`.
    pub(super) unsafe fn find(fid: *mut kfid) -> Result<Self, Refusal> {
        // SAFETY: `fid` is null or an object that stays open for `'a`.
        if let Ok(srx) = unsafe { SrxObject::from_fid(fid) } {
            return Ok(Self::Shared(srx));
        }
        // SAFETY: `fid` is null or an object that stays open for `'a`.
        Self::endpoint(unsafe { EndpointObject::from_fid(fid) }?)
    }

    /// Returns the target of an endpoint. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the endpoint transfers no data.
    pub(super) fn endpoint(endpoint: &'a EndpointObject) -> Result<Self, Refusal> {
        Ok(Self::Endpoint(endpoint, endpoint.transferring()?))
    }

    /// Checks whether the state permits to post a receive, or another transfer.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the target is a shared receive context, and the transfer no receive.
    /// - `ENOCQ`: the shared receive context has no completion queue.
    /// - `EOPNOTSUPP`: a receive on an endpoint that shares a receive context.
    /// - `EOPBADSTATE`, `ENOTCONN`: the endpoint is not enabled, or not connected.
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
                EpPhase::Connected => Ok(()),
                EpPhase::Enabled | EpPhase::Connecting if receives => Ok(()),
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

    /// Returns the default flags of transfers.
    pub(super) fn op_flags(&self) -> OpFlags {
        match self {
            Self::Endpoint(_, msg) => msg.op_flags(),
            Self::Shared(srx) => OpFlags {
                transmit: 0,
                receive: srx.op_flags(),
            },
        }
    }

    /// Returns the domain of the target.
    pub(super) fn domain(&self) -> &'a DomainObject {
        match *self {
            Self::Endpoint(endpoint, _) => endpoint.parent(),
            Self::Shared(srx) => srx.parent(),
        }
    }

    /// Returns the completion queue of a transfer.
    pub(super) fn reports(&self, op: &Op) -> Option<&'a CqBinding> {
        match *self {
            Self::Endpoint(_, msg) => msg.bound().reports(op),
            Self::Shared(srx) => srx.reports(),
        }
    }

    /// Returns the counter of a transfer.
    pub(super) fn counter(&self, op: &Op) -> Option<&'a Arc<CntrCore>> {
        match *self {
            Self::Endpoint(_, msg) => msg.bound().counter(op),
            Self::Shared(srx) => srx.counter.as_ref(),
        }
    }

    /// Passes a transfer to the provider. Any context.
    pub(super) fn post(&self, post: Post<'_>) -> Result<(), PostRefusal> {
        match self {
            Self::Endpoint(_, msg) => msg.imp().post(post),
            Self::Shared(srx) => srx.imp().post(post),
        }
    }

    /// Returns the number of transfers like `op` that the consumer can post. Any context.
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

    /// Cancels a receive that no message has arrived for. Any context.
    pub(super) fn cancel(&self, context: Context) -> Result<(), Refusal> {
        match self {
            Self::Endpoint(_, msg) => msg.imp().cancel(context),
            Self::Shared(srx) => srx.imp().cancel(context),
        }
    }
}
