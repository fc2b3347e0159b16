// SPDX-License-Identifier: GPL-2.0

//! Workqueues of a module, and the core's own.

use crate::prelude::*;
use core::{
    cell::UnsafeCell,
    ops::Deref, //
};
use kernel::{
    bindings,
    workqueue::Queue, //
};

/// A workqueue with `WQ_MEM_RECLAIM`. Dropping it runs all queued work and destroys it.
///
/// A module's work must not outlive the module, and work items of the kernel crate can't be waited
/// for one by one. Destroying the queue at module exit waits for all.
///
/// # Invariants
///
/// The workqueue was allocated and is not destroyed before `drop`.
pub struct OwnedQueue(NonNull<bindings::workqueue_struct>);

// SAFETY: A workqueue may be used and destroyed from any thread.
unsafe impl Send for OwnedQueue {}
// SAFETY: A workqueue may be used by several threads at once.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// Allocates a workqueue that runs at most `at_once` items at a time, and at least 1. May
    /// sleep.
    ///
    /// Each item that sleeps keeps a kernel thread. The kernel's default bound is above a thousand.
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

    /// Sleeps until all work has run that is queued at the call.
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
        // SAFETY: The workqueue is valid by the invariant. No other task has a reference to queue
        // more work.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}

/// A workqueue of the core, which exists while the module is loaded.
///
/// # Invariants
///
/// Only [`init()`] and [`exit`] write `queue`, while no other code reads it.
pub(crate) struct CoreQueue {
    name: &'static CStr,
    at_once: u8,
    queue: UnsafeCell<Option<OwnedQueue>>,
}

// SAFETY: By the invariant, `queue` is not written while several threads may read it.
unsafe impl Sync for CoreQueue {}

impl CoreQueue {
    const fn new(name: &'static CStr, at_once: u8) -> Self {
        // INVARIANT: `queue` is a new value.
        Self {
            name,
            at_once,
            queue: UnsafeCell::new(None),
        }
    }

    /// Returns the workqueue; `None` only if the module is not loaded. Any context.
    pub(crate) fn get(&self) -> Option<&OwnedQueue> {
        // SAFETY: `init` has written `queue`, and nothing writes it before `exit`.
        unsafe { (*self.queue.get()).as_ref() }
    }
}

/// The workqueue for handlers of event queues. Handlers belong to consumers, and may sleep for any
/// time. The bound exceeds the usual number of consumers of a machine. A machine may have hundreds
/// of event queues.
pub(crate) static HANDLERS: CoreQueue = CoreQueue::new(c"kfi_events", 32);

/// The workqueue for the device's part of asynchronous registrations. The registration queue of a
/// domain carries out one registration at a time, and the other work items sleep. So the bound is a
/// few work items for each of several domains.
pub(crate) static REGISTRATIONS: CoreQueue = CoreQueue::new(c"kfi_register", 16);

/// The workqueue for closing regions and telling their owners. This work calls consumers, which may
/// sleep for any time, also until another domain has closed a region. So the bound exceeds the
/// number of domains.
pub(crate) static CLOSINGS: CoreQueue = CoreQueue::new(c"kfi_close", u8::MAX);

/// The workqueue for taking down the regions of disconnected endpoints. This work runs no code of
/// consumers, so only devices can delay it. A stuck device can delay the work of hundreds of
/// endpoints. So the bound exceeds the useful number of threads.
pub(crate) static FALLS: CoreQueue = CoreQueue::new(c"kfi_fall", 64);

/// All workqueues of the core, in the order in which [`exit`] frees them.
static QUEUES: [&CoreQueue; 4] = [&CLOSINGS, &FALLS, &REGISTRATIONS, &HANDLERS];

/// Allocates the workqueues. May sleep.
///
/// # Safety
///
/// Called once, before any other function of this file but [`OwnedQueue`]'s.
pub(crate) unsafe fn init() -> Result {
    for core in QUEUES {
        let queue = OwnedQueue::new(core.name, core.at_once).inspect_err(|_| {
            // SAFETY: The caller promises that no other code of this file uses the queues yet.
            unsafe { exit() }
        })?;
        // SAFETY: The caller promises that no other code of this file uses the queues yet.
        unsafe { *core.queue.get() = Some(queue) };
    }
    Ok(())
}

/// Finishes all work and frees the workqueues. Sleeps.
///
/// # Safety
///
/// Called once, when no code is left that could call another function of this file.
pub(crate) unsafe fn exit() {
    for core in QUEUES {
        // SAFETY: The caller promises that no other code of this file uses the queues any more.
        // Work that still runs needs no queue.
        drop(unsafe { (*core.queue.get()).take() });
    }
}

#[kernel::macros::kunit_tests(kfabric_workqueue)]
mod tests {
    use super::*;
    use kernel::{
        sync::Completion,
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
