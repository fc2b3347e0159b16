// SPDX-License-Identifier: GPL-2.0

//! Quiet that ends by itself: somebody waits for it.

use super::{
    MemDisk,
    Memory, //
};
use block::TagSet;
use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// Ends the quiet after a while.
#[pin_data]
pub(super) struct Noise {
    memory: Arc<Memory>,
    tags: Arc<TagSet<MemDisk>>,
    #[pin]
    work: Work<Noise>,
}

impl_has_work! {
    impl HasWork<Self> for Noise { self.work }
}

impl Noise {
    /// Has it end, by a task of the disk's.
    pub(super) fn follows(memory: &Arc<Memory>, tags: &Arc<TagSet<MemDisk>>) -> Result {
        let (own, set) = (memory.clone(), tags.clone());
        let noise = pin_init!(Self {
            memory: own,
            tags: set,
            work <- new_work!("kfi_memdisk_noise"),
        });
        // It isn't queued yet.
        let _ = memory.tasks.enqueue(Arc::pin_init(noise, GFP_KERNEL)?);
        Ok(())
    }
}

impl WorkItem for Noise {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Long enough for the disk to be made, mostly; if not, nothing was tried.
        fsleep(Delta::from_millis(300));
        this.memory.quiet.store(false, Relaxed);
        this.tags.unquiesce();
        pr_info!("not quiet any more\n");
    }
}
