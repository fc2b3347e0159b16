// SPDX-License-Identifier: GPL-2.0

//! The core's own workqueues.

use crate::workqueue::OwnedQueue;
use core::cell::UnsafeCell;
use kernel::prelude::*;

/// A workqueue that is there while the module is.
///
/// # Invariants
///
/// Written by [`init()`] and [`exit`] only, which have it to themselves.
struct Slot(UnsafeCell<Option<OwnedQueue>>);

// SAFETY: By the invariant, it is only read while several threads may have it.
unsafe impl Sync for Slot {}

/// Runs the handlers of event queues.
static HANDLERS: Slot = Slot(UnsafeCell::new(None));

/// Does the device's part of registrations.
static REGISTRATIONS: Slot = Slot(UnsafeCell::new(None));

/// Allocates the workqueues. May sleep.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() -> Result {
    let handlers = OwnedQueue::new(c"kfi_events")?;
    let registrations = OwnedQueue::new(c"kfi_register")?;
    // SAFETY: By the requirements of this function, nobody else looks at them.
    unsafe {
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
