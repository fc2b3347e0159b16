// SPDX-License-Identifier: GPL-2.0

//! A workqueue of one's own, which the kernel crate has not.
//!
//! The core's own workqueues.

use core::{
    cell::UnsafeCell,
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

/// A workqueue that is there while the module is.
///
/// # Invariants
///
/// Written by [`init()`] and [`exit`] only, which have it to themselves.
struct Slot(UnsafeCell<Option<OwnedQueue>>);

// SAFETY: By the invariant, it is only read while several threads may have it.
unsafe impl Sync for Slot {}

/// How many handlers of event queues run at a time. They belong to consumers and may sleep for as
/// long as they like; so as many as a machine has consumers, and more, but not a thread for each of
/// hundreds of queues.
const HANDLERS_AT_ONCE: u8 = 32;

/// How many registrations are at the device at a time. Those of a domain are carried out one after
/// the other by its only queue, for which the others just sleep; so a few for each of some domains.
const REGISTRATIONS_AT_ONCE: u8 = 16;

/// Runs the handlers of event queues.
static HANDLERS: Slot = Slot(UnsafeCell::new(None));

/// Does the device's part of registrations.
static REGISTRATIONS: Slot = Slot(UnsafeCell::new(None));

/// How many domains' regions are being closed at a time, where nobody waits for that. Their owners are
/// told by this work, belong to consumers and may sleep for as long as they like, also for what another
/// domain closes; so more than there are domains.
const CLOSINGS_AT_ONCE: u8 = u8::MAX;

/// Closes regions whose owners are told.
static CLOSINGS: Slot = Slot(UnsafeCell::new(None));

/// How many endpoints' regions are taken down at a time. No consumer has a say in that, just devices, of
/// which one may have hundreds of endpoints, and be stuck; so some more than the threads that do any good.
const FALLS_AT_ONCE: u8 = 64;

/// Takes down the regions of endpoints that are down.
static FALLS: Slot = Slot(UnsafeCell::new(None));

/// Allocates the workqueues. May sleep.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() -> Result {
    let handlers = OwnedQueue::new(c"kfi_events", HANDLERS_AT_ONCE)?;
    let registrations = OwnedQueue::new(c"kfi_register", REGISTRATIONS_AT_ONCE)?;
    let closings = OwnedQueue::new(c"kfi_close", CLOSINGS_AT_ONCE)?;
    let falls = OwnedQueue::new(c"kfi_fall", FALLS_AT_ONCE)?;
    // SAFETY: By the requirements of this function, nobody else looks at them.
    unsafe {
        *CLOSINGS.0.get() = Some(closings);
        *FALLS.0.get() = Some(falls);
        *HANDLERS.0.get() = Some(handlers);
        *REGISTRATIONS.0.get() = Some(registrations);
    }
    Ok(())
}

/// Lets all work end, and frees the workqueues. Sleeps.
///
/// # Safety
///
/// Called once, when nobody is left who could call anything else of this file.
pub(crate) unsafe fn exit() {
    // SAFETY: By the requirements of this function. What is still running needs no queue.
    unsafe {
        drop((*CLOSINGS.0.get()).take());
        drop((*FALLS.0.get()).take());
        drop((*REGISTRATIONS.0.get()).take());
        drop((*HANDLERS.0.get()).take());
    }
}

/// The workqueue for the handlers of event queues, whose work may take as long as it likes; `None`
/// only if the module isn't there. Any context.
pub(crate) fn handlers() -> Option<&'static OwnedQueue> {
    // SAFETY: Not written before `exit`.
    unsafe { (*HANDLERS.0.get()).as_ref() }
}

/// The workqueue for the device's part of asynchronous registrations; `None` only if the module
/// isn't there. Any context.
pub(crate) fn registrations() -> Option<&'static OwnedQueue> {
    // SAFETY: Not written before `exit`.
    unsafe { (*REGISTRATIONS.0.get()).as_ref() }
}

/// The workqueue that closes regions whose owners are told; `None` only if the module isn't there. Any
/// context.
pub(crate) fn closings() -> Option<&'static OwnedQueue> {
    // SAFETY: Not written before `exit`.
    unsafe { (*CLOSINGS.0.get()).as_ref() }
}

/// The workqueue that takes down the regions of endpoints that are down, in which no code of consumers
/// runs; `None` only if the module isn't there. Any context.
pub(crate) fn falls() -> Option<&'static OwnedQueue> {
    // SAFETY: Not written before `exit`.
    unsafe { (*FALLS.0.get()).as_ref() }
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
