// SPDX-License-Identifier: GPL-2.0

//! Devices that go back in their send queues.
//!
//! What a peer doesn't acknowledge is sent again. rxe begins at the oldest such request then, and carries
//! out all that are behind it once more, those too that are about regions and had been done: a region
//! that the peer has invalidated meanwhile is valid again after that, by the old key. Hardware
//! doesn't do that, nor does rxe with what is no longer in its queue.

use core::ptr::NonNull;

use kernel::sync::aref::ARef;

use crate::device::Device;

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

// SAFETY: What the pointer leads to is not tied to a task.
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

    /// Whether it has not. Any context.
    ///
    /// Who has seen the completion of a request knows then that nothing up to that one was carried out
    /// twice: rxe counts before it goes back.
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
