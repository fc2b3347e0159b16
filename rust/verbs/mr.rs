// SPDX-License-Identifier: GPL-2.0

//! Regions as the core has them.

use crate::{
    kit::Kit,
    link::Link,
    lists,
    refused,
    region::Region,
    roster::Place, //
};
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
    Refusal, //
};

/// A region: its number among the open ones of its domain.
pub(crate) struct Mr {
    link: Arc<Link>,
    number: u64,
    /// What it is made of, if that was reserved.
    kit: Option<Kit>,
}

impl Mr {
    /// Creates a region, disabled. May sleep.
    pub(crate) fn create(link: &Arc<Link>, request: &MrRequest<'_>) -> Result<KBox<Self>, Refusal> {
        // Allocated first: dropping a region that was created would not close it.
        let mut mr = Self::empty(link, None)?;
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let place = Place::new().map_err(|_| Errno::ENOMEM)?;
        let region = Region::create(inside.get(), link.mr_limits(), request, None)?;
        mr.number = link.regions().insert(place, region);
        Ok(mr)
    }

    /// Reserves what one region after the other is made of, of up to so many pages each, but for
    /// the region of the device. May sleep.
    pub(crate) fn reserve(link: &Arc<Link>, pages: u32) -> Result<KBox<Self>, Refusal> {
        let kit = Kit::new(pages).map_err(refused::not_mapped)?;
        Self::empty(link, Some(kit))
    }

    /// No region, or none yet.
    fn empty(link: &Arc<Link>, kit: Option<Kit>) -> Result<KBox<Self>, Refusal> {
        let (link, number) = (link.clone(), 0);
        Ok(KBox::new(Self { link, number, kit }, GFP_KERNEL)?)
    }
}

impl provider::Mr for Mr {
    fn create_again(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let link = &self.link;
        let kit = self.kit.as_mut().ok_or(Errno::EINVAL)?;
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let place = kit.take_place()?;
        let pool = inside.get().pool();
        pool.begin_reserved();
        match Region::create(inside.get(), link.mr_limits(), request, Some(kit.table())) {
            Ok(region) => {
                self.number = link.regions().insert(place, region);
                Ok(())
            }
            Err(refusal) => {
                *kit.place() = Some(place);
                pool.end_reserved();
                Err(refusal)
            }
        }
    }

    fn enable(&mut self, _bindings: &Bindings) -> Result<Keys, Refusal> {
        let inside = self.link.gate().enter().ok_or(refused::gone())?;
        let enable = |region: &mut Region| region.enable(inside.get());
        let enabled = self.link.regions().with(self.number, enable);
        enabled.unwrap_or(Err(refused::gone()))
    }

    fn refresh(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let Some(inside) = self.link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let limits = self.link.mr_limits();
        let refresh = |region: &mut Region| region.refresh(inside.get(), limits, request);
        let refreshed = self.link.regions().with(self.number, refresh);
        refreshed.unwrap_or(Err(refused::gone()))
    }

    /// Releases the region, or waits until removal has. `EIO` if the device won't let go of it.
    fn close(&mut self) -> Result<(), Refusal> {
        let reserved = self.kit.is_some();
        let mut place = None;
        let closed = self
            .link
            .regions()
            .close(self.number, &mut place, |region| {
                let Some(inside) = self.link.gate().enter() else {
                    return region.deregister();
                };
                let released = region.release(inside.get());
                if reserved {
                    inside.get().pool().end_reserved();
                }
                released
            });
        if let Some(kit) = &mut self.kit {
            *kit.place() = place;
        }
        closed
    }
}
