// SPDX-License-Identifier: GPL-2.0

//! A region that is registered on an endpoint's queue pair.

use crate::{
    ep,
    refused, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    num,
    provider::Keys,
    EpCore,
    Refusal,
    RemotePiece, //
};
use rdma::{
    endpoint_mr::{
        EndpointMr,
        Settled, //
    },
    mr::{
        FastMr,
        Fence, //
    },
    sg::Memory, //
};

/// A region that an endpoint registers, and that endpoint after the registration.
pub(super) struct EpRegion {
    mr: EndpointMr<Memory>,
    endpoint: Option<Arc<EpCore>>,
}

impl EpRegion {
    pub(super) fn new(mr: EndpointMr<Memory>) -> Self {
        let endpoint = None;
        Self { mr, endpoint }
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

    /// Returns the fence by which it is free already, or `None` if it isn't free. `fence` is that of other regions. Any
    /// context.
    pub(super) fn free_by(&self, fence: Fence) -> Option<Fence> {
        let inside = self.endpoint.as_ref()?.enter()?;
        let part = inside.part();
        let fence = part.as_deref().and_then(inner)?.fence(&self.mr, fence);
        self.mr.is_free_by(fence).then_some(fence)
    }

    /// Takes the device region, if it is [free](Self::free_by) by this fence. Any context.
    pub(super) fn into_free(self, fence: Fence) -> Result<FastMr, Self> {
        if !self.mr.is_free_by(fence) {
            return Err(self);
        }
        if let Some(inside) = self.endpoint.as_ref().and_then(|endpoint| endpoint.enter()) {
            let part = inside.part();
            if let Some(inner) = part.as_deref().and_then(inner) {
                inner.forget(&self.mr);
            }
        }
        let Self { mr, endpoint } = self;
        mr.into_free(fence).map_err(|mr| Self { mr, endpoint })
    }

    /// Returns how its registration has ended. Sleeps until then.
    pub(super) fn settle(self, mut fence: Fence) -> Settled<Memory> {
        if let Some(inside) = self.endpoint.as_ref().and_then(|endpoint| endpoint.enter()) {
            let part = inside.part();
            if let Some(inner) = part.as_deref().and_then(inner) {
                fence = inner.settle(&self.mr, fence);
            }
        }
        self.mr.settle(fence)
    }
}

/// Returns the verbs side of an endpoint.
fn inner(part: &(dyn Any + Send + Sync)) -> Option<&ep::Inner> {
    part.downcast_ref()
}
