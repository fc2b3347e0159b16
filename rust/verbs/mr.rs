// SPDX-License-Identifier: GPL-2.0

//! Regions as the core has them.

mod gathering;
mod many;

pub(crate) use self::gathering::Gathering;
pub(crate) use self::many::{
    close_many,
    enable_many, //
};

use crate::{
    link::Link,
    lists,
    refused,
    region::Region,
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
    PartBox,
    Refusal,
    RemotePiece, //
};
use rdma::sg::SpareTable;

/// A region.
pub(crate) struct Mr {
    link: Arc<Link>,
    state: State,
    /// The entries of its list, if it is one of those that were reserved.
    spare: Option<SpareTable>,
}

// There is a cache for such.
const _: () = assert!(size_of::<Mr>() <= kfabric::PART_SIZE);

enum State {
    /// Not created, or closed.
    Idle,
    /// On the device, enabled or not.
    Open(Region),
    /// The device or its endpoint went away, and the device had let go of it or not.
    Ended(Result<(), Refusal>),
}

impl Mr {
    /// Creates a region, disabled. May sleep.
    pub(crate) fn create(
        link: &Arc<Link>,
        request: &MrRequest<'_>,
    ) -> Result<PartBox<Self>, Refusal> {
        // Allocated first: dropping a region that was created would not close it.
        let mut mr = Self::idle(link, None)?;
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let region = Region::create(inside.get(), link.mr_limits(), request, None)?;
        mr.state = State::Open(region);
        Ok(mr)
    }

    /// Creates a region and lets peers in. Sleeps until the device is done.
    pub(crate) fn register(
        link: &Arc<Link>,
        request: &MrRequest<'_>,
    ) -> Result<(PartBox<Self>, Keys), Refusal> {
        // Allocated first: dropping a region that was created would not close it.
        let mr = PartBox::new_uninit(GFP_KERNEL)?;
        let Some(inside) = link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let (region, keys) = Region::register(inside.get(), link.mr_limits(), request)?;
        Ok((PartBox::write(mr, Self::open(link, region)), keys))
    }

    #[inline]
    fn open(link: &Arc<Link>, region: Region) -> Self {
        Self {
            link: link.clone(),
            state: State::Open(region),
            spare: None,
        }
    }

    /// Reserves what one region after the other is made of, of up to so many pages each, but for
    /// the region of the device. May sleep.
    pub(crate) fn reserve(link: &Arc<Link>, pages: u32) -> Result<PartBox<Self>, Refusal> {
        let spare = SpareTable::alloc(pages).map_err(refused::not_mapped)?;
        Self::idle(link, Some(spare))
    }

    fn idle(link: &Arc<Link>, spare: Option<SpareTable>) -> Result<PartBox<Self>, Refusal> {
        // Made where it is going to be: what is idle has nothing to be moved.
        let mr = init!(Self {
            link: link.clone(),
            state: State::Idle,
            spare,
        });
        Ok(PartBox::init(mr, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?)
    }

    /// The region, if its device is there.
    fn region(&mut self) -> Result<&mut Region, Refusal> {
        match &mut self.state {
            State::Open(region) => Ok(region),
            State::Idle | State::Ended(_) => Err(refused::gone()),
        }
    }
}

/// Takes a region from the device, which may be one of those that were reserved. Sleeps.
fn release(region: &mut Region, resources: &Resources, reserved: bool) -> Result<(), Refusal> {
    let released = region.release(resources);
    if reserved {
        resources.pool().end_reserved();
    }
    released
}

impl provider::Mr for Mr {
    fn create_again(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let spare = self.spare.as_ref().ok_or(Errno::EINVAL)?;
        let Some(inside) = self.link.gate().enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let pool = inside.get().pool();
        pool.begin_reserved();
        let region = Region::create(inside.get(), self.link.mr_limits(), request, Some(spare))
            .inspect_err(|_| pool.end_reserved())?;
        self.state = State::Open(region);
        Ok(())
    }

    fn enable(&mut self, bindings: &Bindings) -> Result<Keys, Refusal> {
        let link = self.link.clone();
        let inside = link.gate().enter().ok_or(refused::gone())?;
        self.region()?.enable(inside.get(), bindings)
    }

    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        match &self.state {
            State::Open(region) => region.pieces(),
            State::Idle | State::Ended(_) => Err(refused::gone()),
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
        if matches!(self.state, State::Open(_)) {
            self.state = State::Ended(self.close());
        }
    }

    fn close(&mut self) -> Result<(), Refusal> {
        let released = match &mut self.state {
            State::Open(region) => match self.link.gate().enter() {
                Some(inside) => release(region, inside.get(), self.spare.is_some()),
                // It goes away, but not before this is done: it ends what is open first.
                None => region.deregister(),
            },
            State::Idle => return Ok(()),
            State::Ended(how) => *how,
        };
        self.state = State::Idle;
        released
    }

    fn close_now(&mut self) -> bool {
        let State::Open(region) = &mut self.state else {
            return false;
        };
        let closed = match self.link.gate().enter() {
            Some(inside) => region.release_now(inside.get()),
            None => false,
        };
        if closed {
            self.state = State::Idle;
        }
        closed
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
