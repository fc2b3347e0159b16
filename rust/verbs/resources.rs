// SPDX-License-Identifier: GPL-2.0

//! What a domain has on its device, behind its gate.

use crate::{
    fence,
    mode::Mode,
    pool::{
        figures::Shown,
        Pool, //
    },
    queue::{
        following::Following,
        Queue, //
    },
    work::Queues, //
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};
use rdma::{
    mr::Fence,
    Device,
    Pd, //
};

/// What a domain has on its device.
#[pin_data(PinnedDrop)]
pub(crate) struct Resources {
    // The order of the fields is the order in which they go.
    _shown: Shown,
    following: Option<Following>,
    queue: Arc<Queue>,
    pool: Arc<Pool>,
    pd: Arc<Pd>,
    /// Whether the device can invalidate regions.
    invalidates: bool,
    /// Whether peers may do atomic operations where they may write.
    atomics: bool,
    fence: Fence,
    /// Regions are registered on endpoints.
    lends: bool,
}

impl Resources {
    /// Makes what a domain needs, and finds out what the device can do. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENETDOWN` without an active port.
    /// - What the driver says.
    pub(crate) fn new(
        device: &ARef<Device>,
        work: Queues,
        mode: Mode,
        atomics: bool,
    ) -> Result<Pin<KBox<Self>>> {
        let max_pages = device.limits().max_fast_reg_pages;
        let pd = Pd::alloc(device)?;
        let queue = Queue::new(pd.clone())?;
        let invalidates = queue.can_invalidate()?;
        let pool = Pool::new(pd.clone(), max_pages, work.pools)?;
        let fence = fence::of(device, invalidates);
        let following = Some(Following::new(&queue, work.paths)?);
        KBox::pin_init(
            pin_init!(Self {
                _shown: Shown::new(&pool),
                following,
                queue,
                pool,
                pd,
                invalidates,
                atomics,
                fence,
                lends: mode.by_endpoint(),
            }),
            GFP_KERNEL,
        )
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    pub(crate) fn device(&self) -> &ARef<Device> {
        self.pd.device()
    }

    /// Whether the device can invalidate regions.
    pub(crate) fn invalidates(&self) -> bool {
        self.invalidates
    }

    /// Whether peers may do atomic operations where they may write.
    pub(crate) fn atomics(&self) -> bool {
        self.atomics
    }

    /// How regions are taken from the device.
    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// Whether regions are registered on endpoints.
    pub(crate) fn lends(&self) -> bool {
        self.lends
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
