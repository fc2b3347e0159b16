// SPDX-License-Identifier: GPL-2.0

//! What an endpoint has on its device.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::provider::msg_ep::Room;
use rdma::{
    cm,
    qp::Depths,
    Access,
    AccessFlags,
    Cq,
    Pd,
    Qp, //
};

use super::limits::{
    segments,
    INJECT_SIZE, //
};

/// The queue pair, and its completion queue.
pub(super) struct Wires {
    // The order of the fields is the order in which they go.
    endpoint: Arc<cm::Endpoint>,
    pd: Arc<Pd>,
    sends: usize,
}

impl Wires {
    /// Makes a queue pair with room for so many requests. May sleep.
    pub(super) fn new(pd: &Arc<Pd>, sends: usize, receives: usize) -> Result<Self> {
        let device = pd.device();
        let depths = Depths {
            send: sends.try_into()?,
            receive: receives.try_into()?,
            segments: segments(&device.limits()).try_into()?,
            inline: INJECT_SIZE.try_into()?,
        };
        let entries = depths.in_send_queue() + depths.in_receive_queue();
        let cq = Cq::alloc_for_callbacks(device, entries)?;
        let port = device.ports().next().ok_or(ENODEV)?.number();
        // What a peer may do to a region is for the region to say.
        let access: AccessFlags =
            Access::LocalWrite | Access::RemoteRead | Access::RemoteWrite | Access::RemoteAtomic;
        let qp = Qp::create(pd, &cq, &cq, depths)?.init(port, access)?;
        Ok(Self {
            endpoint: cm::Endpoint::new(qp)?,
            pd: pd.clone(),
            sends,
        })
    }

    /// The queue pair. Any context.
    pub(super) fn endpoint(&self) -> &Arc<cm::Endpoint> {
        &self.endpoint
    }

    /// How many more requests there are places for. Any context.
    pub(super) fn room(&self) -> Room {
        let (sends, receives) = self.endpoint.room();
        Room { sends, receives }
    }

    /// How many requests to the peer may be under way. Any context.
    pub(super) fn sends(&self) -> usize {
        self.sends
    }

    /// The protection domain. Any context.
    pub(super) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }
}
