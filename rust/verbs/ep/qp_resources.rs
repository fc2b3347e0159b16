// SPDX-License-Identifier: GPL-2.0

//! What an endpoint has on its device.

use super::{
    limits::{
        segments,
        INJECT_SIZE, //
    },
    sinks::Sinks, //
};
use crate::{
    fence::ByPeer,
    refused, //
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
    provider::msg_ep::Room,
    Refusal, //
};
use rdma::{
    cm,
    lent::Fate,
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
    /// Room for so many requests to the peer, and nothing else. With what makes a peer's invalidation a fence,
    /// and with sinks, where that takes anything. `refuses_inv` says that the device has refused `IB_WR_LOCAL_INV`. May
    /// sleep.
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

    /// The fence of a region that was registered here, whose fence is `fence` otherwise. Any context.
    pub(super) fn fence(&self, fate: &Fate, fence: Fence) -> Fence {
        match &self.by_peer {
            Some(by_peer) if !fence.invalidates() => by_peer.fence(fate),
            _ => fence,
        }
    }

    /// Makes a queue pair with room for so many receives. Called once, or [`share`](Self::share) is. May
    /// sleep.
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
        // What a peer may do to a region is for the region to say.
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

    /// The queue pair, once it is made. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: it isn't.
    pub(super) fn endpoint(&self) -> Result<&Arc<cm::Endpoint>, Refusal> {
        self.endpoint.as_ref().ok_or(refused::not_connected())
    }

    /// Checks whether `IB_WR_LOCAL_INV` can be posted. Any context.
    pub(super) fn has_local_inv(&self) -> bool {
        !self.refuses_inv && self.pd.device().has_local_inv()
    }

    /// How many more requests there are places for. Any context.
    pub(super) fn room(&self) -> Room {
        let room = self.endpoint.as_ref().map(|endpoint| endpoint.room());
        let (sends, receives) = room.unwrap_or_default();
        Room { sends, receives }
    }

    /// How many requests to the peer may be under way. Any context.
    pub(super) fn sends(&self) -> usize {
        self.sends
    }

    /// Where the memory of reads is registered, if that is needed. Any context.
    pub(super) fn sinks(&self) -> Option<&Arc<Sinks>> {
        self.sinks.as_ref()
    }

    /// The protection domain. Any context.
    pub(super) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }
}
