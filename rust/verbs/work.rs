// SPDX-License-Identifier: GPL-2.0

//! The module's workqueues.

use crate::prelude::*;

kernel::sync::global_lock! {
    // SAFETY: Initialized by `Work::new`, which the module calls first.
    unsafe(uninit) static QUEUES: Mutex<Option<Queues>> = None;
}

/// How many pools are refilled at a time. Each has one piece of work, which the driver serializes
/// with others' anyway, and which nobody waits for.
const REFILLS_AT_ONCE: u8 = 4;

/// How many registration queues look around at a time, which is seldom and takes a while.
const LOOKS_AT_ONCE: u8 = 4;

/// How many connections are taken down at a time after a failure.
const FAILURES_AT_ONCE: u8 = 16;

/// The module's workqueues.
#[derive(Clone)]
pub(crate) struct Queues {
    /// For pools, and for tasks that wait for them while writing memory back.
    pub(crate) pools: Arc<OwnedQueue>,
    /// For registration queues that follow their address: takes locks of the network stack, whose
    /// holders may be waiting for memory. Nobody waits for that on the way of writing it back.
    pub(crate) paths: Arc<OwnedQueue>,
    /// For connections on which a request has failed.
    pub(crate) connections: Arc<OwnedQueue>,
}

/// The module's workqueues, there from module init to exit.
pub(crate) struct Work;

impl Work {
    /// Makes the workqueues. May sleep.
    ///
    /// # Safety
    ///
    /// Called once, before anything else of this file.
    pub(crate) unsafe fn new() -> Result<Self> {
        // SAFETY: `QUEUES` is initialized here only, and nobody has locked it before, as this
        // function demands.
        unsafe { QUEUES.init() };
        let queues = Queues {
            pools: Arc::new(OwnedQueue::new(c"kfi_pools", REFILLS_AT_ONCE)?, GFP_KERNEL)?,
            paths: Arc::new(OwnedQueue::new(c"kfi_paths", LOOKS_AT_ONCE)?, GFP_KERNEL)?,
            connections: Arc::new(
                OwnedQueue::new(c"kfi_connections", FAILURES_AT_ONCE)?,
                GFP_KERNEL,
            )?,
        };
        *QUEUES.lock() = Some(queues);
        Ok(Self)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // A static is never dropped.
        let queues = QUEUES.lock().take();
        if let Some(queues) = &queues {
            // Queued work holds this queue, and would destroy it from within.
            queues.connections.flush();
        }
        drop(queues);
    }
}

/// Returns the module's workqueues, while they are there. May sleep.
pub(crate) fn queues() -> Option<Queues> {
    QUEUES.lock().clone()
}
