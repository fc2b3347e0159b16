// SPDX-License-Identifier: GPL-2.0

//! The core's own workqueues.

use crate::support::workqueue::OwnedQueue;
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
