// SPDX-License-Identifier: GPL-2.0

//! A region as peers find it.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    }, //
};
use kfabric::{
    extent::CpuMemory,
    gate::{
        Gate,
        GateGuard,
        Shared, //
    },
    provider::Bindings,
    Counter,
    Endpoint,
    Errno,
    Refusal, //
};

/// A region. Peers that hold it have found its key, and go through the gate to its memory.
#[pin_data]
pub(crate) struct Region {
    #[pin]
    gate: Gate<RegionContents, Shared>,
    auth_key: KVec<u8>,
}

/// What is behind the gate.
pub(crate) struct RegionContents {
    pub(crate) extent: CpuMemory,
    /// Set when the region is enabled.
    bound: SetOnce<RegionBindings>,
}

/// What a region is bound to.
#[derive(Clone)]
struct RegionBindings {
    /// Counts writes.
    counter: Option<Arc<Counter>>,
    /// The only way in, if there is one.
    endpoint: Option<Arc<Endpoint>>,
}

impl RegionContents {
    /// What counts writes, if something does.
    pub(crate) fn counter(&self) -> Option<&Arc<Counter>> {
        self.bound.as_ref()?.counter.as_ref()
    }

    /// The only way in, if there is one.
    pub(crate) fn endpoint(&self) -> Option<&Arc<Endpoint>> {
        self.bound.as_ref()?.endpoint.as_ref()
    }
}

impl Region {
    /// A region of some memory that is not enabled. May sleep.
    pub(crate) fn new(auth_key: &[u8], extent: CpuMemory) -> Result<Arc<Self>, Refusal> {
        let mut own = KVec::new();
        own.extend_from_slice(auth_key, GFP_KERNEL)?;
        let region = try_pin_init!(Self {
            gate <- Gate::new(RegionContents {
                extent,
                bound: SetOnce::new(),
            }),
            auth_key: own,
        }? Error);
        Ok(Arc::pin_init(region, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?)
    }

    /// The authorization key that a peer must have; empty for none.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// Lets peers in, through an endpoint only if it is bound to one. Any context.
    pub(crate) fn enable(&self, bindings: &Bindings) -> Result<(), Refusal> {
        let bound = RegionBindings {
            counter: bindings.counter.clone(),
            endpoint: bindings.endpoint.clone(),
        };
        let inside = self.gate.enter();
        match inside.is_some_and(|inside| inside.get().bound.populate(bound)) {
            true => Ok(()),
            false => Err(Refusal::new(Errno::EINVAL, c"enabled before, or closed")),
        }
    }

    /// Goes in to the memory; `None` if the region is not enabled. Any context.
    pub(crate) fn enter(&self) -> Option<GateGuard<'_, RegionContents, Shared>> {
        let inside = self.gate.enter()?;
        inside.get().bound.as_ref()?;
        Some(inside)
    }

    /// Puts other memory in the place of what there was. Sleeps until nobody uses the old memory;
    /// meanwhile nobody is let in.
    pub(crate) fn refresh(&self, extent: CpuMemory) -> Result<(), Refusal> {
        let disabled = Refusal::new(Errno::EINVAL, c"not enabled");
        let inside = self.enter().ok_or(disabled)?;
        let bound = SetOnce::new();
        if let Some(old) = inside.get().bound.as_ref() {
            bound.populate(old.clone());
        }
        drop(inside);
        match self.gate.shut() {
            Some(shut) => {
                shut.drain().replace(RegionContents { extent, bound });
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
