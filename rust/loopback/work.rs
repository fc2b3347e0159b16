// SPDX-License-Identifier: GPL-2.0

//! The module's workqueue, on which transfers are done.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::workqueue::OwnedQueue;

kernel::sync::global_lock! {
    // SAFETY: Initialized by `Work::new`, which the module calls first.
    unsafe(uninit) static QUEUE: Mutex<Option<Arc<OwnedQueue>>> = None;
}

/// How many endpoints transfer something at a time. Each that does keeps a CPU busy.
const AT_ONCE: u8 = 16;

/// The module's workqueue, there from module init to exit.
pub(crate) struct Work;

impl Work {
    /// Makes the workqueue. May sleep.
    ///
    /// # Safety
    ///
    /// Called once, before anything else of this file.
    pub(crate) unsafe fn new() -> Result<Self> {
        // SAFETY: By the requirements of this function.
        unsafe { QUEUE.init() };
        *QUEUE.lock() = Some(Arc::new(
            OwnedQueue::new(c"kfi_loop", AT_ONCE)?,
            GFP_KERNEL,
        )?);
        Ok(Self)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // A static is never dropped.
        let queue = QUEUE.lock().take();
        if let Some(queue) = queue {
            // What is queued holds it, and would destroy it from within.
            queue.flush();
        }
    }
}

/// The workqueue, while it is there. May sleep.
pub(crate) fn queue() -> Option<Arc<OwnedQueue>> {
    QUEUE.lock().clone()
}
