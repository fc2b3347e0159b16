// SPDX-License-Identifier: GPL-2.0

//! What a domain has on its device.

mod end;

pub(crate) use end::remove;

use crate::{
    callbacks::Callbacks,
    device::Queues,
    ext::{
        self,
        Holder, //
    },
    fence,
    kit::Kit,
    lists,
    pool::{
        Pool,
        Shown, //
    },
    queue::{
        Following,
        Queue, //
    },
    refused,
    region::Region,
    regions::{
        Place,
        Regions, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    }, //
};
use kfabric::{
    gate::{
        Gate,
        PerCpu, //
    },
    num,
    provider::Keys,
    Errno,
    MrLimits,
    MrRequest,
    Refusal,
    MOST_PIECES, //
};
use rdma::{
    mr::Fence,
    Limits,
    Pd, //
};

/// What a domain has on its device, behind the gate.
#[pin_data(PinnedDrop)]
pub(crate) struct Resources {
    // The order of the fields is the order in which they go.
    _shown: Shown,
    following: Option<Following>,
    queue: Arc<Queue>,
    pool: Arc<Pool>,
    pd: Arc<Pd>,
}

impl Resources {
    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    pub(crate) fn device(&self) -> &ARef<rdma::Device> {
        self.pd.device()
    }
}

#[pinned_drop]
impl PinnedDrop for Resources {
    fn drop(self: Pin<&mut Self>) {
        let this = self.project();
        // Nothing begins any more, and the pool waits for what has: they share a workqueue.
        drop(this.following.take());
        this.pool.close();
    }
}

/// The gate in front of it. Every registration of the domain goes through it several times, and it
/// is shut once.
pub(crate) type ResourcesGate = Gate<Pin<KBox<Resources>>, PerCpu>;

/// An open domain and its device, each of which may end first.
#[pin_data]
pub(crate) struct Link {
    #[pin]
    gate: ResourcesGate,
    #[pin]
    regions: Regions<Region, Refusal>,
    #[pin]
    callbacks: Callbacks<ext::Removal>,
    /// The device, until the removal callbacks have returned: they undo mappings.
    #[pin]
    device: Mutex<Option<ARef<rdma::Device>>>,
    /// Who took the protection domain last.
    #[pin]
    holder: Mutex<Option<Holder>>,
    fence: Fence,
    mr_limits: MrLimits,
}

impl Link {
    /// Sets up what a domain needs. `ENETDOWN` without an active port. May sleep.
    pub(crate) fn new(device: &ARef<rdma::Device>, work: Queues, raw: bool) -> Result<Arc<Self>> {
        let limits = device.limits();
        let pd = Pd::alloc(device)?;
        let queue = Queue::new(pd.clone())?;
        let invalidates = queue.can_invalidate()?;
        let fence = fence::of(device, invalidates);
        let mr_limits = MrLimits {
            refresh: fence::allows_refresh(fence, invalidates),
            ..mr_limits(&limits, raw)
        };
        let pool = Pool::new(pd.clone(), limits.max_fast_reg_pages, work.pools)?;
        let following = Some(queue.follow(work.paths)?);
        let resources = KBox::pin_init(
            pin_init!(Resources {
                _shown: Shown::new(&pool),
                following,
                queue,
                pool,
                pd,
            }),
            GFP_KERNEL,
        )?;
        Arc::pin_init(
            try_pin_init!(Self {
                gate <- Gate::new(resources),
                regions <- Regions::new(),
                callbacks <- Callbacks::new(),
                device <- new_mutex!(Some(device.clone())),
                holder <- new_mutex!(None),
                fence,
                mr_limits,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// What everybody goes through who uses the device. Any context.
    pub(crate) fn gate(&self) -> &ResourcesGate {
        &self.gate
    }

    pub(crate) fn mr_limits(&self) -> &MrLimits {
        &self.mr_limits
    }

    pub(crate) fn callbacks(&self) -> &Callbacks<ext::Removal> {
        &self.callbacks
    }

    /// The device, until its removal callbacks have returned. May sleep, but not for long.
    pub(crate) fn device(&self) -> Option<ARef<rdma::Device>> {
        self.device.lock().clone()
    }

    /// Does something with the device, whose removal waits until `f` has returned; nothing if it
    /// is gone. `f` mustn't sleep. May sleep, but not for long.
    pub(crate) fn with_device(&self, f: impl FnOnce(&rdma::Device)) {
        if let Some(device) = &*self.device.lock() {
            f(device);
        }
    }

    /// A consumer takes the protection domain; it should know when it must give it back. May sleep,
    /// but not for long.
    pub(crate) fn pd_taken(&self, holder: Holder) {
        if self.callbacks.is_empty() {
            if let Some(device) = self.device() {
                holder.warn(
                    &device,
                    "removal will wait, for want of on_removal, for who took a protection domain:",
                );
            }
        }
        *self.holder.lock() = Some(holder);
    }

    /// Creates a region, disabled; gives its number. May sleep.
    pub(crate) fn create_region(&self, request: &MrRequest<'_>) -> Result<u64, Refusal> {
        let Some(inside) = self.gate.enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let place = Place::new().map_err(|_| Errno::ENOMEM)?;
        let region = Region::create(inside.get(), &self.mr_limits, request, None)?;
        Ok(self.regions.insert(place, region))
    }

    /// The same, of what was reserved. May sleep.
    pub(crate) fn create_reserved(
        &self,
        request: &MrRequest<'_>,
        kit: &mut Kit,
    ) -> Result<u64, Refusal> {
        let Some(inside) = self.gate.enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let place = kit.take_place()?;
        let pool = inside.get().pool();
        pool.begin_reserved();
        match Region::create(inside.get(), &self.mr_limits, request, Some(kit.table())) {
            Ok(region) => Ok(self.regions.insert(place, region)),
            Err(refusal) => {
                *kit.place() = Some(place);
                pool.end_reserved();
                Err(refusal)
            }
        }
    }

    /// Reserves what `count` regions of up to so many pages need. May sleep.
    pub(crate) fn reserve(&self, count: usize, pages: u32) -> Result<(), Refusal> {
        let inside = self.gate.enter().ok_or(refused::gone())?;
        let pool = inside.get().pool();
        pool.reserve(count, pages).map_err(refused::no_region)
    }

    /// Lets peers in. Sleeps until the device is done.
    pub(crate) fn enable_region(&self, number: u64) -> Result<Keys, Refusal> {
        let inside = self.gate.enter().ok_or(refused::gone())?;
        let enabled = self
            .regions
            .with(number, |region| region.enable(inside.get()));
        enabled.unwrap_or(Err(refused::gone()))
    }

    /// Gives a region the memory that is behind its addresses now. Sleeps until the device is done.
    pub(crate) fn refresh_region(
        &self,
        number: u64,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let Some(inside) = self.gate.enter() else {
            lists::check_memory(request)?;
            return Err(refused::gone());
        };
        let refreshed = self.regions.with(number, |region| {
            region.refresh(inside.get(), &self.mr_limits, request, self.fence)
        });
        refreshed.unwrap_or(Err(refused::gone()))
    }

    /// Releases a region, or waits until removal has. Sleeps until no peer can reach it; `EIO` if
    /// the device won't let go of it. What it was made of goes back to `kit`, if it was reserved.
    pub(crate) fn close_region(&self, number: u64, kit: Option<&mut Kit>) -> Result<(), Refusal> {
        let reserved = kit.is_some();
        let mut place = None;
        let closed = self.regions.close(number, &mut place, |region| {
            let inside = self.gate.enter();
            match inside {
                Some(inside) => {
                    let released = region.release(inside.get(), self.fence);
                    if reserved {
                        inside.get().pool().end_reserved();
                    }
                    released
                }
                None => region.deregister(),
            }
        });
        if let Some(kit) = kit {
            *kit.place() = place;
        }
        closed
    }
}

/// What a region can be on a device; `raw` if it can be several to the device.
pub(crate) fn mr_limits(limits: &Limits, raw: bool) -> MrLimits {
    let pages = limits.max_fast_reg_pages.min(crate::pool::MAX_PAGES);
    let (segments, pieces) = match raw {
        true => (MOST_PIECES, MOST_PIECES),
        false => (num::index(pages), 1),
    };
    MrLimits {
        regions: num::index(limits.max_mr),
        segments,
        pages: u64::from(pages),
        bytes: limits.max_mr_size,
        holes: limits.sg_gaps,
        peer_to_peer: limits.peer_to_peer,
        pieces,
        ..MrLimits::NONE
    }
}
