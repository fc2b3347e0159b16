// SPDX-License-Identifier: GPL-2.0

//! Shared receive contexts.

use super::{
    done::SharedReceiveHandler,
    post::{
        begin,
        new_memory,
        receive, //
    },
    qp_resources::segments,
    sharers::Sharers, //
};
use crate::prelude::*;
use rdma::srq::Srq;

/// Resources of a context on its device.
struct Queue {
    srq: Arc<Srq>,
    pd: Arc<Pd>,
}

/// A receive context. Endpoints that share it keep its queue until they have ended.
pub(crate) struct Srx {
    /// In front of what it has on the device.
    gate: Pin<KBox<Gate<Queue, Shared>>>,
    pub(super) sharers: Arc<Sharers>,
}

impl Srx {
    /// Creates a context in a domain with space for `size` receives. May sleep.
    pub(crate) fn new(link: &Link, size: usize) -> Result<Self, Refusal> {
        // From here on the device's removal waits until this is done; then it ends the context.
        let inside = link.gate.enter().ok_or(driver_errors::gone())?;
        let pd = &inside.get().pd;
        let make = || -> Result<_> {
            let segments = segments(&pd.device().limits()).try_into()?;
            let srq = Srq::create(pd, size.try_into()?, segments)?;
            let pd = pd.clone();
            let gate = KBox::pin_init(Gate::new(Queue { srq, pd }), GFP_KERNEL)?;
            Ok((gate, Sharers::new()?))
        };
        let (gate, sharers) = make().map_err(driver_errors::no_endpoint)?;
        Ok(Self { gate, sharers })
    }

    /// Returns the queue, if it exists.
    pub(super) fn queue(&self) -> Result<Arc<Srq>, Refusal> {
        let inside = self.gate.enter().ok_or(driver_errors::gone())?;
        Ok(inside.get().srq.clone())
    }
}

impl provider::msg_ep::Srx for Srx {
    fn post(&self, post: Post<'_>) -> Result<(), PostRefusal> {
        let Some(inside) = self.gate.enter() else {
            return Err(post.refuse(driver_errors::gone()));
        };
        let (transfer, ticket) = post.into_parts();
        let Queue { srq, pd } = inside.get();
        let sharers = self.sharers.clone();
        let handler = SharedReceiveHandler { ticket, sharers };
        let receive = || receive(pd, transfer);
        begin(receive, handler, new_memory, |request| srq.post(request))
            .map_err(|(why, handler)| PostRefusal::new(why, handler.ticket))
    }

    fn room(&self) -> usize {
        let inside = self.gate.enter();
        inside.map_or(0, |inside| inside.get().srq.room())
    }

    fn end(&self) {
        match self.gate.shut() {
            // With the queue's last reference all that is left ends.
            Some(shut) => shut.drain().take_away(),
            // Somebody is at it, or was.
            None => self.gate.wait_gone(),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Srx {
    fn drop(&mut self) {
        // If it was never handed out.
        provider::msg_ep::Srx::end(self);
    }
}
