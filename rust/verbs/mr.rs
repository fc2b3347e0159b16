// SPDX-License-Identifier: GPL-2.0

//! Regions as the core has them.

mod batch;

pub(crate) use self::batch::{
    close_many,
    enable_many, //
};

use crate::{
    link::Link,
    lists,
    refused,
    region::{
        register_request,
        MrSpec,
        Region, //
    },
    resources::Resources, //
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
    Errno,
    MrRequest,
    Refusal,
    RemotePiece, //
};
use rdma::sg::SpareTable;

/// A region.
pub(crate) struct Mr {
    link: Arc<Link>,
    region: Region,
}

impl Mr {
    /// Creates a region, disabled. May sleep.
    pub(crate) fn create(link: &Arc<Link>, request: &MrRequest<'_>) -> Result<Self, Refusal> {
        // Allocated first: dropping a region that was created would not close it.
        let mut mr = Self::idle(link, None)?;
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        mr.region.create(inside.get(), link.mr_limits(), request)?;
        Ok(mr)
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
                let mut region = Region::idle(None)?;
                region.create(resources, limits, request)?;
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

    /// Reserves what one region after the other is made of, of up to so many pages each, but for
    /// the region of the device. May sleep.
    pub(crate) fn reserve(link: &Arc<Link>, pages: u32) -> Result<Self, Refusal> {
        let spare = SpareTable::alloc(pages).map_err(refused::not_mapped)?;
        Self::idle(link, Some(spare))
    }

    fn idle(link: &Arc<Link>, spare: Option<SpareTable>) -> Result<Self, Refusal> {
        Ok(Self::open(link, Region::idle(spare)?))
    }

    /// The region, if its device is there.
    fn region(&mut self) -> Result<&mut Region, Refusal> {
        match self.region.is_open() {
            true => Ok(&mut self.region),
            false => Err(refused::gone()),
        }
    }
}

/// Takes a region from the device, if it is there; it may be one of those that were reserved. Sleeps.
fn release(region: &mut Region, resources: &Resources, together: bool) -> Result<(), Refusal> {
    let open = region.is_open();
    let released = region.release(resources, together);
    if open && region.is_reserved() {
        resources.pool().end_reserved();
    }
    released
}

impl provider::Mr for Mr {
    fn create_again(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        if !self.region.is_reserved() {
            return Err(Errno::EINVAL.into());
        }
        let Some(inside) = self.link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let pool = inside.get().pool();
        pool.begin_reserved();
        self.region
            .create(inside.get(), self.link.mr_limits(), request)
            .inspect_err(|_| pool.end_reserved())
    }

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

    /// Nothing of it is left on the device, unless that won't let go of it.
    fn end(&mut self) {
        if self.region.is_open() {
            let how = self.close();
            self.region.set_ended(how);
        }
    }

    fn close(&mut self) -> Result<(), Refusal> {
        match self.link.gate().enter() {
            Some(inside) => release(&mut self.region, inside.get(), false),
            // It goes away, but not before this is done: it ends what is open first.
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
