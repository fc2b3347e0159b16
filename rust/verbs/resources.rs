// SPDX-License-Identifier: GPL-2.0

//! Resources of a domain on its device, behind its gate.

use crate::{
    mode::Mode,
    pool::{
        figures::Shown,
        Pool, //
    },
    prelude::*,
    reg_queue::{
        Following,
        Queue, //
    },
    rights::Rights,
    rxe::PdSharing,
    work::Queues, //
};
use kfabric::trace::DomainLabel;
use rdma::Device;

/// Resources of a domain on its device.
#[pin_data(PinnedDrop)]
pub(crate) struct Resources {
    // The order of the fields is the order in which they go.
    _shown: Shown,
    following: Option<Following>,
    /// The registration queue, but where no queue pair can be connected to itself (iWARP).
    pub(crate) queue: Option<Arc<Queue>>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) pd: Arc<Pd>,
    /// The sharing of the protection domain.
    pub(crate) sharing: Arc<PdSharing>,
    /// Whether the device can invalidate regions.
    pub(crate) invalidates: bool,
    /// The mapping of regions' rights to those of the device.
    pub(crate) rights: Rights,
    /// The fence of regions.
    pub(crate) fence: Fence,
    /// Regions are registered on endpoints.
    pub(crate) lends: bool,
}

impl Resources {
    /// Makes the resources of a domain, and finds out what the device can do. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENETDOWN` without an active port.
    /// - The error of the driver.
    pub(crate) fn new(
        device: &ARef<Device>,
        work: Queues,
        mode: Mode,
        atomics: bool,
        label: &Arc<DomainLabel>,
    ) -> Result<Pin<KBox<Self>>> {
        let max_pages = device.limits().max_fast_reg_pages;
        let pd = Pd::alloc(device)?;
        let queue = match device.connects_freely() {
            true => Some(Queue::new(pd.clone())?),
            false => None,
        };
        // Without the queue it isn't tried.
        let invalidates = match &queue {
            Some(queue) => queue.can_invalidate()?,
            None => false,
        };
        let pool = Pool::new(pd.clone(), max_pages, work.pools, label.clone())?;
        let sharing = Arc::new(PdSharing::new(), GFP_KERNEL)?;
        let fence = rxe::fence_of(device, invalidates);
        let following = match &queue {
            Some(queue) => Some(Following::new(queue, work.paths)?),
            None => None,
        };
        KBox::pin_init(
            pin_init!(Self {
                _shown: Shown::new(&pool),
                following,
                queue,
                pool,
                pd,
                sharing,
                invalidates,
                rights: Rights::new(device, atomics),
                fence,
                lends: mode.by_endpoint(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a queue pair of the registration queue. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the device has no registration queue.
    /// - `ENODEV`: the device goes away.
    /// - The errors of a new queue pair.
    pub(crate) fn queue_pair(&self) -> Result<Arc<RegQp>> {
        match &self.queue {
            Some(queue) => queue.get(),
            None => Err(Errno::EOPNOTSUPP.into()),
        }
    }

    /// Waits until no object is being made or destroyed in the background, which could be taken for
    /// others'. Sleeps.
    pub(crate) fn settle(&self) {
        if let Some(following) = &self.following {
            following.settle();
        }
        self.pool.settle();
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
