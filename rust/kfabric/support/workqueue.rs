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
// SAFETY: A workqueue may be used by several threads at once.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// Allocates a workqueue. May sleep.
    ///
    /// At most `at_once` items of it, which is at least 1, run or sleep at a time; others wait for
    /// their turn. Each that sleeps keeps a thread of the kernel's, and the kernel's own bound,
    /// where none is given, is above a thousand.
    pub fn new(name: &CStr, at_once: u8) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM;
        let at_once = i32::from(at_once.max(1));
        // SAFETY: The format takes one string.
        let queue = unsafe {
            bindings::alloc_workqueue_noprof(
                c"%s".as_char_ptr(),
                flags,
                at_once,
                name.as_char_ptr(),
            )
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

#[kernel::macros::kunit_tests(kfabric_workqueue)]
mod tests {
    use super::*;
    use kernel::{
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc,
            Completion, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    #[test]
    fn no_more_sleep_than_may() -> Result {
        const ITEMS: i32 = 40;
        let started = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let go = Arc::pin_init(Completion::new(), GFP_KERNEL)?;
        // Dropped before the others, since it waits for all items.
        let queue = OwnedQueue::new(c"kfabric_kunit", 4)?;
        for _ in 0..ITEMS {
            let (started, go) = (started.clone(), go.clone());
            queue.try_spawn(GFP_KERNEL, move || {
                started.fetch_add(1, Relaxed);
                go.wait_for_completion();
            })?;
        }
        // As long as it takes for all that may, and then for those that may not.
        for _ in 0..10_000 {
            if started.load(Relaxed) >= 4 {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        fsleep(Delta::from_millis(200));
        let sleeping = started.load(Relaxed);
        go.complete_all();
        queue.flush();
        assert_eq!((sleeping, started.load(Relaxed)), (4, ITEMS));
        Ok(())
    }
}
