// SPDX-License-Identifier: GPL-2.0

//! A region that is registered on an endpoint's queue pair.

use crate::{
    ep,
    prelude::*, //
};
use kfabric::EpCore;
use rdma::endpoint_mr::{
    EndpointMr,
    Settled, //
};

/// A region that an endpoint registers, and that endpoint after the registration.
pub(super) struct EpRegion {
    mr: EndpointMr<Memory>,
    endpoint: Option<Arc<EpCore>>,
}

impl EpRegion {
    /// Prepares a region for the registration on an endpoint. May sleep.
    pub(super) fn new(mr: PreparedMr<Memory>) -> Result<Self, Refusal> {
        let mr = mr.lend().map_err(refused::no_region)?;
        let endpoint = None;
        Ok(Self { mr, endpoint })
    }

    /// Registers it on an endpoint, and returns how the peer reaches it that gets the key by a later message there.
    /// Does nothing and returns `None` if the endpoint is not connected yet. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection is gone, or the endpoint.
    /// - `EAGAIN`: its queue is full.
    /// - `ENOMEM`
    pub(super) fn register(
        &mut self,
        endpoint: &Arc<EpCore>,
        more: bool,
    ) -> Result<Option<Keys>, Refusal> {
        let Some(inside) = endpoint.enter() else {
            return match endpoint.is_open() {
                true => Ok(None),
                false => Err(refused::not_connected()),
            };
        };
        let part = inside.part();
        let Some(inner) = part.as_deref().and_then(inner) else {
            return Ok(None);
        };
        if !inner.register(&mut self.mr, more)? {
            return Ok(None);
        }
        self.endpoint = Some(endpoint.clone());
        let mr = self.mr.prepared();
        Ok(Some(Keys {
            key: u64::from(mr.rkey()),
            base: mr.iova(),
            desc: num::index(mr.lkey()),
            whole: true,
        }))
    }

    /// Returns how a peer that has got the key reaches it. Any context.
    pub(super) fn piece(&self) -> RemotePiece {
        let mr = self.mr.prepared();
        RemotePiece {
            key: u64::from(mr.rkey()),
            base: mr.iova(),
            len: mr.length(),
        }
    }

    /// Checks whether no registration is under way. Any context.
    pub(super) fn is_settled(&self) -> bool {
        self.mr.is_settled()
    }

    /// Checks whether the region is free: the peer has invalidated it, and that is a fence. `fence` is the fence of other
    /// regions. Any context.
    pub(super) fn is_free_by(&self, fence: Fence) -> bool {
        self.at_endpoint(|endpoint| self.mr.is_free_by(endpoint.fence(&self.mr, fence)))
            .unwrap_or(false)
    }

    /// Returns the result of the registration. Sleeps until the registration has ended, unless it
    /// [is settled](Self::is_settled).
    pub(super) fn settle(self, fence: Fence) -> Settled<Memory> {
        let own = self.at_endpoint(|endpoint| endpoint.settle(&self.mr, fence));
        self.mr.settle(own.unwrap_or(fence))
    }

    /// Calls `f` with the endpoint that has posted the registration, unless that endpoint is closed. Any context.
    fn at_endpoint<T>(&self, f: impl FnOnce(&ep::Inner) -> T) -> Option<T> {
        let inside = self.endpoint.as_ref()?.enter()?;
        let part = inside.part();
        part.as_deref().and_then(inner).map(f)
    }
}

/// Returns the verbs side of an endpoint.
fn inner(part: &(dyn Any + Send + Sync)) -> Option<&ep::Inner> {
    part.downcast_ref()
}
