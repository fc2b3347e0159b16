// SPDX-License-Identifier: GPL-2.0

//! Detection of retries that rxe executes twice.
//!
//! A requester retries requests that the peer has not acknowledged. rxe starts at the oldest of
//! them, and executes all later requests again, also completed requests about regions. So a region
//! that the peer has invalidated becomes valid again with the old key. Hardware does not do that,
//! and rxe does not repeat requests that have left its queue.

use crate::{
    device::Device,
    prelude::*, //
};

/// Tells whether rxe has gone back in any send queue since this was made, or may be about to.
///
/// # Invariants
///
/// `counters` are those of `device`, and this one's.
pub struct Replays {
    device: ARef<Device>,
    counters: NonNull<rdma_bindings::rdma_helper_replays>,
    before: u64,
}

// SAFETY: Any task may read the counters.
unsafe impl Send for Replays {}

// SAFETY: Reading the counters does its own locking.
unsafe impl Sync for Replays {}

impl Replays {
    /// Begins to look. [`None`] on devices that don't tell, which all are but rxe, and without memory. May
    /// sleep.
    pub fn watch(device: &ARef<Device>) -> Option<Self> {
        // SAFETY: The device is there.
        let counters = unsafe { rdma_bindings::rdma_helper_find_replays(device.as_raw()) };
        // INVARIANT: They have just been found.
        let mut this = Self {
            device: device.clone(),
            counters: NonNull::new(counters)?,
            before: 0,
        };
        this.before = this.count();
        Some(this)
    }

    /// Checks that rxe has not gone back since [`Replays::watch`]. Any context.
    ///
    /// If it returns true after a request has completed, rxe has executed nothing up to that
    /// request twice: rxe counts before it goes back.
    pub fn none_since(&self) -> bool {
        self.count() == self.before
    }

    fn count(&self) -> u64 {
        let (device, counters) = (self.device.as_raw(), self.counters.as_ptr());
        // SAFETY: The device is there, and the counters are its own by the type invariant.
        unsafe { rdma_bindings::rdma_helper_count_replays(device, counters) }
    }
}

impl Drop for Replays {
    fn drop(&mut self) {
        // SAFETY: They are this one's, by the type invariant, and not used again.
        unsafe { rdma_bindings::rdma_helper_free_replays(self.counters.as_ptr()) };
    }
}
