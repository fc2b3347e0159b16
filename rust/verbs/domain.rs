// SPDX-License-Identifier: GPL-2.0

//! Domains, and the end of what they have on a device.

use crate::{
    callbacks::Callbacks,
    device::Device,
    ext, ffi,
    gate::Gate,
    pool::Pool,
    queue::Queue,
    refused,
    regions::{
        Place,
        Regions, //
    },
    register::{
        self,
        Region, //
    },
};
use core::{
    any::Any,
    ptr::NonNull, //
};
use kernel::{
    dma::DataDirection,
    ffi::c_void,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    }, //
};
use kfabric::{
    provider::{
        self,
        Dma,
        RawSgl,
        Registered, //
    },
    workqueue::OwnedQueue,
    Errno,
    MrLimits,
    MrRequest,
    Refusal, //
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
    #[pin]
    queue: Queue,
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
        self.pool.close();
    }
}

/// An open domain and its device, each of which may end first.
#[pin_data]
pub(crate) struct Link {
    #[pin]
    gate: Gate<Resources>,
    #[pin]
    regions: Regions<Region>,
    #[pin]
    callbacks: Callbacks<ext::Removal>,
    /// The device, until the removal callbacks have returned: they undo mappings.
    #[pin]
    device: Mutex<Option<ARef<rdma::Device>>>,
    fence: Fence,
    mr_limits: MrLimits,
}

impl Link {
    fn new(device: &ARef<rdma::Device>, work: Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let limits = device.limits();
        let fence = crate::fence::of(device);
        let pd = Pd::alloc(device)?;
        let queue = Queue::new(pd.clone())?;
        let pool = Pool::new(pd.clone(), limits.max_fast_reg_pages, work)?;
        let resources = Arc::pin_init(
            pin_init!(Resources { queue <- queue, pool, pd }),
            GFP_KERNEL,
        )?;
        Arc::pin_init(
            pin_init!(Self {
                gate <- Gate::new(resources),
                regions <- Regions::new(),
                callbacks <- Callbacks::new(),
                device <- new_mutex!(Some(device.clone())),
                fence,
                mr_limits: mr_limits(&limits),
            }),
            GFP_KERNEL,
        )
    }

    pub(crate) fn gate(&self) -> &Gate<Resources> {
        &self.gate
    }

    pub(crate) fn callbacks(&self) -> &Callbacks<ext::Removal> {
        &self.callbacks
    }

    /// The device, until its removal callbacks have returned. May sleep, but not for long.
    pub(crate) fn device(&self) -> Option<ARef<rdma::Device>> {
        self.device.lock().clone()
    }

    /// A consumer takes the protection domain; it should know when it must give it back.
    pub(crate) fn pd_taken(&self) {
        if self.callbacks.is_empty() {
            if let Some(device) = self.device() {
                pr_warn!(
                    "{}: protection domain taken by a consumer without on_removal: removal of the device will wait for it\n",
                    device.name()
                );
            }
        }
    }

    /// Releases a region, or waits until removal has. Sleeps until no peer can reach it.
    fn close_region(&self, number: u64) -> Result<(), Refusal> {
        let mut closed = Ok(());
        self.regions.close(number, |region| {
            let inside = self.gate.enter();
            closed = match inside.as_ref().and_then(|inside| inside.get()) {
                Some(resources) => region.release(resources, self.fence),
                None => region.deregister(),
            };
        });
        closed
    }

    /// The device goes away: ends everything that the domain has on it. Sleeps until that is done,
    /// and as long as others use the protection domain.
    pub(crate) fn remove(&self) {
        let Some(shut) = self.gate.shut() else {
            return self.gate.wait_gone();
        };
        shut.get().queue.die();
        let drained = shut.drain();
        self.callbacks.run();
        *self.device.lock() = None;
        self.regions.remove_all(|region| {
            if let Err(refusal) = region.deregister() {
                pr_err!("removal: {}\n", refusal.why());
            }
        });
        let users = drained.get().pd.foreign_users();
        if users > 0 {
            let device = drained.get().device().name();
            pr_warn!(
                "{}: removal waits for {} objects that consumers have on a protection domain\n",
                device,
                users
            );
        }
        drained.take_away();
    }

    /// The domain is closed, without regions.
    fn close(&self) {
        match self.gate.shut() {
            Some(shut) => {
                *self.device.lock() = None;
                shut.drain().take_away();
            }
            None => self.gate.wait_gone(),
        }
    }
}

/// What a region can be on a device.
pub(crate) fn mr_limits(limits: &Limits) -> MrLimits {
    let pages = limits.max_fast_reg_pages.min(crate::pool::MOST_PAGES);
    MrLimits {
        segments: usize::try_from(pages).unwrap_or(usize::MAX),
        pages: u64::from(pages),
        bytes: limits.max_mr_size,
        holes: limits.sg_gaps,
        flags: 0,
        auth_keys: false,
    }
}

/// A domain as the core has it.
pub(crate) struct Domain {
    link: Arc<Link>,
    device: Arc<Device>,
}

impl Domain {
    pub(crate) fn open(device: Arc<Device>) -> Result<Self, Refusal> {
        let present = device.get().ok_or(refused::gone())?;
        let work = crate::device::work().ok_or(refused::gone())?;
        let link = Link::new(&present, work).map_err(refused::no_domain)?;
        let domain = Self { link, device };
        domain
            .device
            .add(domain.link.clone())
            .map_err(refused::no_domain)?;
        Ok(domain)
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        self.device.remove(&self.link);
        self.link.close();
    }
}

impl provider::Domain for Domain {
    fn mr_limits(&self) -> &MrLimits {
        &self.link.mr_limits
    }

    fn register(&self, request: &MrRequest<'_>) -> Result<Registered, Refusal> {
        let inside = self.link.gate.enter();
        let Some(resources) = inside.as_ref().and_then(|inside| inside.get()) else {
            register::check_memory(request)?;
            return Err(refused::gone());
        };
        let place = Place::new().map_err(|_| Errno::ENOMEM)?;
        let mut mr = KBox::new(
            Mr {
                link: self.link.clone(),
                number: 0,
            },
            GFP_KERNEL,
        )?;
        let region = Region::register(resources, request)?;
        let (key, base, lkey) = (region.key(), region.base(), region.lkey());
        mr.number = self.link.regions.insert(place, region);
        Ok(Registered {
            mr,
            key: u64::from(key),
            base,
            desc: usize::try_from(lkey).map_err(|_| Errno::EIO)?,
        })
    }

    fn dma(&self) -> Option<&dyn Dma> {
        Some(self)
    }

    fn extension(&self, name: &CStr) -> Option<NonNull<c_void>> {
        (name == ext::NAME).then(ext::table)
    }

    fn may_close(&self) -> Result<(), Refusal> {
        let inside = self.link.gate.enter();
        let users = inside
            .as_ref()
            .and_then(|inside| inside.get())
            .map_or(0, |resources| resources.pd.foreign_users());
        match users {
            0 => Ok(()),
            _ => {
                let refusal = Refusal::new(Errno::EBUSY, c"others use the protection domain");
                Err(refusal.value(kfabric::num::widen(users)))
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A region as the core has it.
struct Mr {
    link: Arc<Link>,
    number: u64,
}

impl provider::Mr for Mr {
    fn close(&mut self) -> Result<(), Refusal> {
        self.link.close_region(self.number)
    }
}

impl Dma for Domain {
    fn map(&self, list: RawSgl, direction: DataDirection) -> Result<usize, Refusal> {
        let inside = self.link.gate.enter();
        let resources = inside.as_ref().and_then(|inside| inside.get());
        let resources = resources.ok_or(refused::gone())?;
        ffi::map(resources.device(), list, direction).map_err(refused::not_mapped)
    }

    fn unmap(&self, list: RawSgl, direction: DataDirection) {
        self.with_device(|device| ffi::unmap(device, list, direction));
    }

    fn sync_for_cpu(&self, list: RawSgl, direction: DataDirection) {
        self.with_device(|device| ffi::sync_for_cpu(device, list, direction));
    }

    fn sync_for_device(&self, list: RawSgl, direction: DataDirection) {
        self.with_device(|device| ffi::sync_for_device(device, list, direction));
    }
}

impl Domain {
    /// Does something with the device as long as there is one: when it goes, its mappings must
    /// have been undone by the removal callback, in which the device is still there.
    fn with_device(&self, f: impl FnOnce(&rdma::Device)) {
        if let Some(device) = self.link.device() {
            f(&device);
        }
    }
}
