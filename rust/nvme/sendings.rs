// SPDX-License-Identifier: GPL-2.0

//! The number of capsules that a device has.
//!
//! A device may not return capsules after its connection has ended. The task that stops the queue gives
//! them up. Requests of given-up capsules end, and must not be used if a capsule comes back later.

use crate::prelude::*;

/// The capsules were given up. The other bits count.
const GIVEN_UP: usize = 1;
/// One capsule.
const CAPSULE: usize = 2;

/// The number of [`Sending`](crate::Sending)s of a queue.
pub(crate) struct Sendings(Atomic<usize>);

impl Sendings {
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Counts a capsule. Any context.
    pub(crate) fn begin(&self) {
        self.0.add(CAPSULE, Relaxed);
    }

    /// Takes [`begin`](Self::begin) back. Returns false if the capsule was given up. Any context.
    pub(crate) fn end(&self) -> bool {
        self.0.fetch_sub(CAPSULE, Full) & GIVEN_UP == 0
    }

    /// Gives the counted capsules up. Nobody may count another one until [`clear`](Self::clear).
    pub(crate) fn give_up(&self) {
        self.0.fetch_add(GIVEN_UP, Full);
    }

    /// Returns the number.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Acquire) / CAPSULE
    }

    /// Begins anew. The number must be 0.
    pub(crate) fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}
