// SPDX-License-Identifier: GPL-2.0

//! Regions as the core has them. A batch of regions waits for the device once.
//!
//! A region of several device regions is registered and closed by itself.

use crate::{
    lists,
    prelude::*,
    region::{
        register_request,
        revoke,
        Batch,
        MrSpec,
        Region, //
    }, //
};
use kfabric::{
    gate::{
        GateGuard,
        PerCpu, //
    },
    provider::{
        BatchEntry,
        Bindings,
        ProviderMr,
        Registered, //
    },
    ListVec, //
};

/// A region.
pub(crate) struct Mr {
    link: Arc<Link>,
    region: Region,
}

/// The resources of a domain, whose device stays until this is dropped.
type Inside<'a> = GateGuard<'a, Pin<KBox<Resources>>, PerCpu>;

/// Enters the gate of a domain for a request. If the device is gone and the memory is refused,
/// returns the refusal of the memory. May sleep.
fn enter<'a>(link: &'a Link, request: &MrRequest<'_>) -> Result<Inside<'a>, Refusal> {
    match link.gate.enter() {
        Some(inside) => Ok(inside),
        None => {
            Err(lists::check_memory(request).map_or_else(|bad| bad, |()| driver_errors::gone()))
        }
    }
}

impl Mr {
    /// Creates a region, disabled. May sleep.
    pub(crate) fn create(link: &Arc<Link>, request: &MrRequest<'_>) -> Result<Self, Refusal> {
        let inside = enter(link, request)?;
        let region = Region::create(inside.get(), &link.mr_limits, request)?;
        Ok(Self::open(link, region))
    }

    /// Creates a region and lets peers in. Sleeps until the device is done.
    pub(crate) fn register(
        link: &Arc<Link>,
        request: &MrRequest<'_>,
    ) -> Result<(Self, Keys), Refusal> {
        let inside = enter(link, request)?;
        let (resources, limits) = (inside.get(), &link.mr_limits);
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
            false => Err(driver_errors::gone()),
        }
    }
}

impl provider::MrOps for Mr {
    fn enable(&mut self, bindings: &Bindings) -> Result<Keys, Refusal> {
        let link = self.link.clone();
        let inside = link.gate.enter().ok_or(driver_errors::gone())?;
        self.region()?.enable(inside.get(), bindings)
    }

    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        match self.region.is_open() {
            true => self.region.pieces(),
            false => Err(driver_errors::gone()),
        }
    }

    fn refresh(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let link = self.link.clone();
        let inside = enter(&link, request)?;
        self.region()?
            .refresh(inside.get(), &link.mr_limits, request)
    }

    /// Takes the region from the device, and keeps the result for `close`.
    fn end(&mut self) {
        if self.region.is_open() {
            let how = self.close();
            self.region.set_ended(how);
        }
    }

    fn close(&mut self) -> Result<(), Refusal> {
        match self.link.gate.enter() {
            Some(inside) => self.region.release(inside.get(), false),
            // The device goes away, but not before this is done: its removal ends open regions first.
            None => self.region.deregister(),
        }
    }

    fn close_now(&mut self) -> bool {
        match self.link.gate.enter() {
            Some(inside) => self.region.release_now(inside.get()),
            None => false,
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Registrations in one domain that wait for the device once. The device stays until this is dropped.
pub(crate) struct MrBatch<'a> {
    /// The regions, in order. `None` is a region of one device region, which is in `batch`.
    regions: ListVec<Option<Region>>,
    batch: Option<Batch>,
    link: &'a Arc<Link>,
    // Dropped last: what was prepared is deregistered before its device goes.
    inside: Inside<'a>,
}

impl<'a> MrBatch<'a> {
    /// Allocates room for up to `count` registrations. Returns `None` without memory for it, or without a device. May
    /// sleep.
    pub(crate) fn new(link: &'a Arc<Link>, count: usize) -> Option<KBox<Self>> {
        let batch = Self {
            link,
            inside: link.gate.enter()?,
            regions: ListVec::with_capacity(count, GFP_KERNEL).ok()?,
            batch: Some(Batch::with_capacity(count).ok()?),
        };
        KBox::new(batch, GFP_KERNEL).ok()
    }
}

impl provider::MrBatch for MrBatch<'_> {
    fn prepare(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let (resources, limits) = (self.inside.get(), &self.link.mr_limits);
        let batch = match &mut self.batch {
            Some(batch) if self.regions.len() < self.regions.capacity() => batch,
            _ => return Err(Errno::EINVAL.into()),
        };
        let region = match MrSpec::only(resources, limits, request) {
            Some(spec) => {
                let list = lists::map_one(resources, request, &spec.piece)?;
                batch.push(spec, spec.prepare(resources, list)?);
                None
            }
            None => Some(Region::create(resources, limits, request)?),
        };
        self.regions.push_reserved(region);
        Ok(())
    }

    fn register(&mut self, done: &mut dyn FnMut(Registered)) {
        let (link, resources) = (self.link, self.inside.get());
        let mut regions = mem::take(&mut self.regions).into_iter();
        let mut answer = |registered: Result<(Region, Keys), Refusal>| {
            done(registered.map(|(region, keys)| (ProviderMr::new(Mr::open(link, region)), keys)));
        };
        if let Some(batch) = self.batch.take() {
            batch.register(resources, |registered| {
                for region in regions.by_ref() {
                    match region {
                        Some(region) => answer(region.enabled(resources)),
                        None => return answer(registered.map(Region::of_valid)),
                    }
                }
            });
        }
        regions
            .flatten()
            .for_each(|region| answer(region.enabled(resources)));
    }
}

/// Enables several regions. Without memory for a batch this enables each by itself, so that regions of the reserve
/// don't fail. Sleeps until the device is done with all of them.
pub(crate) fn enable_many(link: &Link, mrs: &mut [BatchEntry<'_, Keys>]) {
    let Some(inside) = link.gate.enter() else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(Err(driver_errors::gone())));
        return;
    };
    let resources = inside.get();
    let Ok(mut batch) = Batch::with_capacity(mrs.len()) else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(one.mr.enable(one.bindings)));
        return;
    };
    for one in mrs.iter_mut() {
        *one.done = match region_of(one.mr) {
            Ok(region) => match region.join(&mut batch) {
                true => None,
                false => Some(region.enable(resources, one.bindings)),
            },
            Err(refusal) => Some(Err(refusal)),
        };
    }
    // All others are done.
    let mut waiting = mrs.iter_mut().filter(|one| one.done.is_none());
    batch.register(resources, |registered| {
        if let Some(one) = waiting.next() {
            let region = region_of(one.mr);
            *one.done =
                Some(region.and_then(|region| region.set_registered(resources, registered)));
        }
    });
}

/// Returns the region of an object of this provider, if its device is there.
fn region_of(mr: &mut dyn provider::MrOps) -> Result<&mut Region, Refusal> {
    match mr.as_any().downcast_mut().map(Mr::region) {
        Some(region) => region,
        None => Err(Errno::EINVAL.into()),
    }
}

/// Closes several. Sleeps until no peer can reach any.
pub(crate) fn close_many(link: &Link, mrs: &mut [BatchEntry<'_, ()>]) {
    let Some(inside) = link.gate.enter() else {
        return each_by_itself(mrs);
    };
    let resources = inside.get();
    if !resources.fence.invalidates() {
        for one in mrs {
            *one.done = Some(match one.mr.as_any().downcast_mut() {
                Some(Mr { region, .. }) => region.release(resources, true),
                None => one.mr.close(),
            });
        }
    } else if !invalidated(resources, mrs) {
        each_by_itself(mrs);
    }
}

fn each_by_itself(mrs: &mut [BatchEntry<'_, ()>]) {
    for one in mrs {
        *one.done = Some(one.mr.close());
    }
}

/// Invalidates several together, where that is the fence; or does nothing and returns `false`.
fn invalidated(resources: &Resources, mrs: &mut [BatchEntry<'_, ()>]) -> bool {
    let lists = (
        ListVec::with_capacity(mrs.len(), GFP_KERNEL),
        ListVec::with_capacity(mrs.len(), GFP_KERNEL),
    );
    let (Ok(mut valid), Ok(mut free)) = lists else {
        return false;
    };
    for one in mrs.iter_mut() {
        let mr: Option<&mut Mr> = one.mr.as_any().downcast_mut();
        match mr.and_then(|mr| mr.region.take_only(resources)) {
            Some(own) => valid.push_reserved(own),
            None => *one.done = Some(one.mr.close()),
        }
    }
    if valid.is_empty() {
        return true;
    }
    // If the device keeps one, nobody knows which one: none may be freed.
    let done = revoke(resources, valid, |mr| free.push_reserved(mr));
    resources.pool.put_all(free);
    // All others are done.
    for one in mrs.iter_mut().filter(|one| one.done.is_none()) {
        *one.done = Some(done);
    }
    true
}
