// SPDX-License-Identifier: GPL-2.0

//! A workqueue of one's own, which the kernel crate has not.

use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    prelude::*,
    str::CStr,
    workqueue::Queue, //
};

/// A workqueue that is there for memory reclaim, and is gone with all its work when dropped.
///
/// A module's work must not outlive the module, and work items of the kernel crate can't be
/// waited for one by one: destroying the queue at module exit waits for all.
///
/// # Invariants
///
/// The workqueue was allocated and is not destroyed before drop.
pub struct OwnedQueue(NonNull<bindings::workqueue_struct>);

// SAFETY: A workqueue may be used and destroyed from any thread.
unsafe impl Send for OwnedQueue {}
// SAFETY: As above.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// Allocates a workqueue. May sleep.
    pub fn new(name: &CStr) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM;
        // SAFETY: The format takes one string.
        let queue = unsafe {
            bindings::alloc_workqueue_noprof(c"%s".as_char_ptr(), flags, 0, name.as_char_ptr())
        };
        // INVARIANT: Just allocated.
        Ok(Self(NonNull::new(queue).ok_or(ENOMEM)?))
    }

    /// Sleeps until all work that is queued now has run.
    pub fn flush(&self) {
        // SAFETY: Valid by the invariant.
        unsafe { bindings::__flush_workqueue(self.0.as_ptr()) };
    }
}

impl Deref for OwnedQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        // SAFETY: Valid by the invariant, for as long as `self`.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: Valid by the invariant; nobody queues work any more. Runs what is queued first.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}
