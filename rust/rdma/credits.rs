// SPDX-License-Identifier: GPL-2.0

//! A counting semaphore.
//!
//! C header: [`include/linux/semaphore.h`](srctree/include/linux/semaphore.h)

use kernel::{
    bindings,
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

use crate::completion::NAP;

/// A number of credits, of which who wants to do something takes one.
///
/// Wraps the C `struct semaphore`. Who waits is served first come, first served.
///
/// # Invariants
///
/// The semaphore is initialized.
#[pin_data]
pub(crate) struct Credits {
    #[pin]
    sem: Opaque<bindings::semaphore>,
}

// SAFETY: A semaphore can be used by any task.
unsafe impl Send for Credits {}

// SAFETY: A semaphore does its own locking.
unsafe impl Sync for Credits {}

impl Credits {
    /// Initializes a number of credits.
    pub(crate) fn new(count: u32) -> impl PinInit<Self> {
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        pin_init!(Self {
            // INVARIANT: This initializes it.
            sem <- Opaque::ffi_init(move |slot| {
                // SAFETY: The slot is memory for a semaphore.
                unsafe { rdma_bindings::rdma_helper_sema_init(slot, count) }
            }),
        })
    }

    /// Takes a credit; [`None`] if there was none for a [`NAP`]. Sleeps, uninterruptibly.
    pub(crate) fn take(&self) -> Option<Credit<'_>> {
        let nap = c_long::try_from(msecs_to_jiffies(NAP)).unwrap_or(c_long::MAX);
        // SAFETY: By the type invariant.
        let taken = unsafe { bindings::down_timeout(self.sem.get(), nap) } == 0;
        taken.then(|| Credit(self))
    }

    /// Takes a credit if there is one. Any context.
    pub(crate) fn try_take(&self) -> Option<Credit<'_>> {
        // SAFETY: By the type invariant `sem` is initialized.
        let taken = unsafe { bindings::down_trylock(self.sem.get()) } == 0;
        taken.then(|| Credit(self))
    }

    /// Gives a credit back that was [kept](Credit::keep). Any context.
    pub(crate) fn give_back(&self) {
        drop(Credit(self));
    }
}

/// A credit that has been taken. Dropping it gives it back, without sleeping.
#[must_use]
pub(crate) struct Credit<'a>(&'a Credits);

impl Credit<'_> {
    /// Leaves it taken, until [`Credits::give_back`].
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant of `Credits`.
        unsafe { bindings::up(self.0.sem.get()) };
    }
}
