// SPDX-License-Identifier: GPL-2.0

//! Regions as the core has them.

mod batch;

pub(crate) use self::batch::{
    close_many,
    enable_many,
    MrBatch, //
};

use crate::{
    link::Link,
    lists, refused,
    region::{
        register_request,
        MrSpec,
        Region, //
    },
};
use core::any::Any;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    provider::{
        self,
        Bindings,
        Keys, //
    },
    MrRequest,
    Refusal,
    RemotePiece, //
};

/// A region.
pub(crate) struct Mr {
    link: Arc<Link>,
    region: Region,
}

impl Mr {
    /// Creates a region, disabled. May sleep.
    pub(crate) fn create(link: &Arc<Link>, request: &MrRequest<'_>) -> Result<Self, Refusal> {
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let region = Region::create(inside.get(), link.mr_limits(), request)?;
        Ok(Self::open(link, region))
    }

    /// Creates a region and lets peers in. Sleeps until the device is done.
    pub(crate) fn register(
        link: &Arc<Link>,
        request: &MrRequest<'_>,
    ) -> Result<(Self, Keys), Refusal> {
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let (resources, limits) = (inside.get(), link.mr_limits());
        let (region, keys) = match MrSpec::only(resources, limits, request) {
            Some(spec) => Region::of_valid(register_request(resources, &spec, request)?),
            None => {
                let region = Region::create(resources, limits, request)?;
                region.enabled(resources)?
            }
        };
        Ok((Self::open(link, region), keys))
    }

    #[inline]
    fn open(link: &Arc<Link>, region: Region) -> Self {
        Self {
            link: link.clone(),
            region,
        }
    }

    /// Returns the region, if its device is there.
    fn region(&mut self) -> Result<&mut Region, Refusal> {
        match self.region.is_open() {
            true => Ok(&mut self.region),
            false => Err(refused::gone()),
        }
    }
}

impl provider::MrOps for Mr {
    fn enable(&mut self, bindings: &Bindings) -> Result<Keys, Refusal> {
        let link = self.link.clone();
        let inside = link.gate().enter().ok_or(refused::gone())?;
        self.region()?.enable(inside.get(), bindings)
    }

    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        match self.region.is_open() {
            true => self.region.pieces(),
            false => Err(refused::gone()),
        }
    }

    fn refresh(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let link = self.link.clone();
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        self.region()?
            .refresh(inside.get(), link.mr_limits(), request)
    }

    /// Takes the region from the device, and keeps the result for `close`.
    fn end(&mut self) {
        if self.region.is_open() {
            let how = self.close();
            self.region.set_ended(how);
        }
    }

    fn close(&mut self) -> Result<(), Refusal> {
        match self.link.gate().enter() {
            Some(inside) => self.region.release(inside.get(), false),
            // The device goes away, but not before this is done: its removal ends open regions first.
            None => self.region.deregister(),
        }
    }

    fn close_now(&mut self) -> bool {
        match self.link.gate().enter() {
            Some(inside) => self.region.release_now(inside.get()),
            None => false,
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
