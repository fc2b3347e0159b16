// SPDX-License-Identifier: GPL-2.0

//! The module's workqueue, on which transfers are done.

use kfabric::{
    prelude::*,
    workqueue::OwnedQueue, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `Work::new`, which the module calls first.
    unsafe(uninit) static QUEUE: Mutex<Option<Arc<OwnedQueue>>> = None;
}

/// Maximum number of endpoints that transfer at a time. Each keeps a CPU busy.
const AT_ONCE: u8 = 16;

/// The module's workqueue, there from module init to exit.
pub(crate) struct Work;

impl Work {
    /// Allocates the workqueue. May sleep.
    ///
    /// # Safety
    ///
    /// Called once, before any other function of this file.
    pub(crate) unsafe fn new() -> Result<Self> {
        // SAFETY: The caller promises that this is the only call, and the first use of the lock.
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
            // A queued item holds a reference to the queue, and would destroy it from within.
            queue.flush();
        }
    }
}

/// Returns the workqueue while it exists. May sleep.
pub(crate) fn queue() -> Option<Arc<OwnedQueue>> {
    QUEUE.lock().clone()
}
