// SPDX-License-Identifier: GPL-2.0

//! Resources of an endpoint on its device.

use super::limits::{
    segments,
    INJECT_SIZE, //
};
use crate::ep::read_sinks::Sinks;
use crate::{
    refused, //
    rxe::ByPeer,
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    },
    types::ScopeGuard, //
};
use kfabric::{
    provider::msg_ep::QueueSpace,
    Refusal, //
};
use rdma::{
    cm,
    endpoint_mr::RegState,
    mr::Fence,
    qp::Depths,
    srq::Srq,
    wc::CqId,
    Access,
    AccessFlags,
    Cq,
    Pd,
    Qp, //
};

/// The queue pair, and its completion queue.
pub(super) struct QpResources {
    // The order of the fields is the order in which they go.
    endpoint: SetOnce<Arc<cm::Endpoint>>,
    pd: Arc<Pd>,
    sends: usize,
    by_peer: Option<ByPeer>,
    /// The device has refused `IB_WR_LOCAL_INV`.
    refuses_inv: bool,
    /// Where the memory of reads is registered that no region was made of, if that is needed.
    sinks: Option<Arc<Sinks>>,
}

impl QpResources {
    /// Creates the resources for `sends` requests to the peer, without a queue pair. `refuses_inv`
    /// is true if the device has refused `IB_WR_LOCAL_INV`. May sleep.
    pub(super) fn new(
        pd: &Arc<Pd>,
        sends: usize,
        by_peer: Option<ByPeer>,
        refuses_inv: bool,
        sinks: Option<Arc<Sinks>>,
    ) -> Self {
        Self {
            endpoint: SetOnce::new(),
            pd: pd.clone(),
            sends,
            by_peer,
            refuses_inv,
            sinks,
        }
    }

    /// Returns the fence of a region that was registered on this queue pair. `fence` is its
    /// default. Any context.
    pub(super) fn fence(&self, fate: &RegState, fence: Fence) -> Fence {
        match &self.by_peer {
            Some(by_peer) if !fence.invalidates() => by_peer.fence(fate),
            _ => fence,
        }
    }

    /// Creates a queue pair with space for `receives` receives. May be called once, instead of
    /// [`share`](Self::share). May sleep.
    pub(super) fn own(&self, receives: usize) -> Result {
        self.make(receives, None, |_| Ok(()))
    }

    /// Makes a queue pair that shares receives. `join` is told where their completions come, before there
    /// are any; what it returns is dropped if there is no queue pair after all, which can be made again then.
    /// May sleep.
    pub(super) fn share<F: FnOnce(())>(
        &self,
        srq: &Arc<Srq>,
        join: impl FnOnce(CqId) -> Result<ScopeGuard<(), F>>,
    ) -> Result {
        self.make(0, Some(srq), join).map(|joined| {
            joined.dismiss();
        })
    }

    fn make<J>(
        &self,
        receives: usize,
        srq: Option<&Arc<Srq>>,
        join: impl FnOnce(CqId) -> Result<J>,
    ) -> Result<J> {
        let (pd, device) = (&self.pd, self.pd.device());
        let depths = Depths {
            send: self.sends.try_into()?,
            receive: receives.try_into()?,
            segments: segments(&device.limits()).try_into()?,
            inline: INJECT_SIZE.try_into()?,
        };
        let receives = match srq {
            Some(srq) => srq.entries()?,
            None => depths.in_receive_queue(),
        };
        let cq = Cq::alloc_for_callbacks(device, depths.in_send_queue() + receives)?;
        let port = device.ports().next().ok_or(ENODEV)?.number();
        // The rights of a region limit the peer.
        let access: AccessFlags =
            Access::LocalWrite | Access::RemoteRead | Access::RemoteWrite | Access::RemoteAtomic;
        let qp = match srq {
            Some(srq) => Qp::create_sharing(pd, &cq, &cq, depths, srq)?,
            None => Qp::create(pd, &cq, &cq, depths)?,
        };
        let qp = qp.init(port, access)?;
        let endpoint = cm::Endpoint::new(qp)?;
        // Dropped before the queue, whose number isn't another one's until then.
        let joined = join(cq.id())?;
        match self.endpoint.populate(endpoint) {
            true => Ok(joined),
            false => Err(EBUSY),
        }
    }

    /// Returns the queue pair. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: there is no queue pair yet.
    pub(super) fn endpoint(&self) -> Result<&Arc<cm::Endpoint>, Refusal> {
        self.endpoint.as_ref().ok_or(refused::not_connected())
    }

    /// Checks whether `IB_WR_LOCAL_INV` can be posted. Any context.
    pub(super) fn has_local_inv(&self) -> bool {
        !self.refuses_inv && self.pd.device().has_local_inv()
    }

    /// Returns the free places for requests. Any context.
    pub(super) fn room(&self) -> QueueSpace {
        let room = self.endpoint.as_ref().map(|endpoint| endpoint.room());
        let (sends, receives) = room.unwrap_or_default();
        QueueSpace { sends, receives }
    }

    /// Returns the maximum number of requests to the peer in flight. Any context.
    pub(super) fn sends(&self) -> usize {
        self.sends
    }

    /// Returns the regions for the memory of reads, if the device needs them. Any context.
    pub(super) fn sinks(&self) -> Option<&Arc<Sinks>> {
        self.sinks.as_ref()
    }

    /// Returns the protection domain. Any context.
    pub(super) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }
}
