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

/// A workqueue that exists while the module is loaded.
///
/// # Invariants
///
/// Only [`init()`] and [`exit`] write it, while no other code reads it.
struct Slot(UnsafeCell<Option<OwnedQueue>>);

// SAFETY: By the invariant, the slot is not written while several threads may read it.
unsafe impl Sync for Slot {}

/// Maximum number of event queue handlers that run at a time. Handlers belong to consumers and may
/// sleep for any time. The bound is above the number of consumers of a machine, and below the
/// hundreds of queues that there may be.
const HANDLERS_AT_ONCE: u8 = 32;

/// Maximum number of registrations that are at the device at a time. The registration queue of a
/// domain carries out one after the other; the others sleep. So a few for each of some domains
/// suffice.
const REGISTRATIONS_AT_ONCE: u8 = 16;

/// Runs the handlers of event queues.
static HANDLERS: Slot = Slot(UnsafeCell::new(None));

/// Runs the device's part of asynchronous registrations.
static REGISTRATIONS: Slot = Slot(UnsafeCell::new(None));

/// Maximum number of domains whose regions are closed at a time in the background. This work calls
/// consumers, which may sleep for any time, also until another domain has closed a region. So the
/// bound is above the number of domains.
const CLOSINGS_AT_ONCE: u8 = u8::MAX;

/// Closes regions and tells their owners.
static CLOSINGS: Slot = Slot(UnsafeCell::new(None));

/// Maximum number of endpoints whose regions are taken down at a time. Only devices can delay this
/// work. A device can have hundreds of endpoints and be stuck. So the bound is some more than the
/// useful number of threads.
const FALLS_AT_ONCE: u8 = 64;

/// Takes down the regions of disconnected endpoints.
static FALLS: Slot = Slot(UnsafeCell::new(None));

/// Allocates the workqueues. May sleep.
///
/// # Safety
///
/// Called once, before any other function of this file but [`OwnedQueue`]'s.
pub(crate) unsafe fn init() -> Result {
    let handlers = OwnedQueue::new(c"kfi_events", HANDLERS_AT_ONCE)?;
    let registrations = OwnedQueue::new(c"kfi_register", REGISTRATIONS_AT_ONCE)?;
    let closings = OwnedQueue::new(c"kfi_close", CLOSINGS_AT_ONCE)?;
    let falls = OwnedQueue::new(c"kfi_fall", FALLS_AT_ONCE)?;
    // SAFETY: The caller promises that no other code of this file uses the slots yet.
    unsafe {
        *CLOSINGS.0.get() = Some(closings);
        *FALLS.0.get() = Some(falls);
        *HANDLERS.0.get() = Some(handlers);
        *REGISTRATIONS.0.get() = Some(registrations);
    }
    Ok(())
}

/// Finishes all work and frees the workqueues. Sleeps.
///
/// # Safety
///
/// Called once, when no code is left that could call another function of this file.
pub(crate) unsafe fn exit() {
    // SAFETY: The caller promises that no other code of this file uses the slots any more. Work
    // that still runs needs no queue.
    unsafe {
        drop((*CLOSINGS.0.get()).take());
        drop((*FALLS.0.get()).take());
        drop((*REGISTRATIONS.0.get()).take());
        drop((*HANDLERS.0.get()).take());
    }
}

/// Returns the workqueue for event queue handlers, whose work may take any time; `None` only if the
/// module is not loaded. Any context.
pub(crate) fn handlers() -> Option<&'static OwnedQueue> {
    // SAFETY: `init` has written the slot, and nothing writes it before `exit`.
    unsafe { (*HANDLERS.0.get()).as_ref() }
}

/// Returns the workqueue for the device's part of asynchronous registrations; `None` only if the
/// module is not loaded. Any context.
pub(crate) fn registrations() -> Option<&'static OwnedQueue> {
    // SAFETY: `init` has written the slot, and nothing writes it before `exit`.
    unsafe { (*REGISTRATIONS.0.get()).as_ref() }
}

/// Returns the workqueue that closes regions and tells their owners; `None` only if the module is
/// not loaded. Any context.
pub(crate) fn closings() -> Option<&'static OwnedQueue> {
    // SAFETY: `init` has written the slot, and nothing writes it before `exit`.
    unsafe { (*CLOSINGS.0.get()).as_ref() }
}

/// Returns the workqueue that takes down the regions of disconnected endpoints; `None` only if the
/// module is not loaded. It runs no code of consumers. Any context.
pub(crate) fn falls() -> Option<&'static OwnedQueue> {
    // SAFETY: `init` has written the slot, and nothing writes it before `exit`.
    unsafe { (*FALLS.0.get()).as_ref() }
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
