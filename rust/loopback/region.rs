// SPDX-License-Identifier: GPL-2.0

//! A region as peers find it.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    extent::Extent,
    gate::{
        Gate,
        Inside,
        Shared, //
    },
    Counter,
    Endpoint,
    Errno,
    Refusal, //
};

/// A region. Peers that hold it have found its key, and go through the gate to its memory.
#[pin_data]
pub(crate) struct Region {
    #[pin]
    gate: Gate<Live, Shared>,
    auth_key: KVec<u8>,
}

/// What is behind the gate while the region is enabled.
pub(crate) struct Live {
    pub(crate) extent: Extent,
    /// Counts writes.
    pub(crate) counter: Option<Arc<Counter>>,
    /// The only way in, if there is one.
    pub(crate) endpoint: Option<Arc<Endpoint>>,
}

impl Region {
    /// A region that is not enabled. May sleep.
    pub(crate) fn new(auth_key: &[u8]) -> Result<Arc<Self>, Refusal> {
        let mut own = KVec::new();
        own.extend_from_slice(auth_key, GFP_KERNEL)?;
        let region = try_pin_init!(Self {
            gate <- Gate::empty(),
            auth_key: own,
        }? Error);
        Ok(Arc::pin_init(region, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?)
    }

    /// The authorization key that a peer must have; empty for none.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// Lets peers in. May sleep, but not for long.
    pub(crate) fn enable(&self, live: Live) -> Result<(), Refusal> {
        if self.gate.open(live) {
            Ok(())
        } else {
            Err(Refusal::new(Errno::EINVAL, c"enabled before, or closed"))
        }
    }

    /// Goes in to the memory; `None` if the region is not enabled. Any context.
    pub(crate) fn enter(&self) -> Option<Inside<'_, Live, Shared>> {
        self.gate.enter()
    }

    /// Puts other memory in the place of what there was. Sleeps until nobody uses the old memory;
    /// meanwhile nobody is let in.
    pub(crate) fn refresh(&self, extent: Extent) -> Result<(), Refusal> {
        let disabled = Refusal::new(Errno::EINVAL, c"not enabled");
        let inside = self.enter().ok_or(disabled)?;
        let Live {
            counter, endpoint, ..
        } = inside.get();
        let new = Live {
            extent,
            counter: counter.clone(),
            endpoint: endpoint.clone(),
        };
        drop(inside);
        match self.gate.shut() {
            Some(shut) => {
                shut.drain().replace(new);
                Ok(())
            }
            None => Err(disabled),
        }
    }

    /// Lets nobody in any more, for good. Sleeps until nobody uses the memory.
    pub(crate) fn close(&self) {
        match self.gate.shut() {
            Some(shut) => shut.drain().take_away(),
            None => self.gate.wait_gone(),
        }
    }
}
