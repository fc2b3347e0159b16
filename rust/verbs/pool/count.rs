// SPDX-License-Identifier: GPL-2.0

//! The counters of a pool.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Counts, since the domain was opened.
pub(super) struct Count {
    pub(super) taken: Atomic<u64>,
    pub(super) missed: Atomic<u64>,
    pub(super) given_back: Atomic<u64>,
    pub(super) of_reserve: Atomic<u64>,
    pub(super) not_invalidated: Atomic<u64>,
}

impl Count {
    pub(super) const fn new() -> Self {
        Self {
            taken: Atomic::new(0),
            missed: Atomic::new(0),
            given_back: Atomic::new(0),
            of_reserve: Atomic::new(0),
            not_invalidated: Atomic::new(0),
        }
    }

    /// Counts a region that was taken from a line.
    pub(super) fn taken(&self) {
        self.taken.fetch_add(1, Relaxed);
    }

    /// Counts a region that was made in the call, since there was none.
    pub(super) fn missed(&self) {
        self.missed.fetch_add(1, Relaxed);
    }

    /// Counts a region of the reserve that comes into use.
    pub(super) fn of_reserve(&self) {
        self.of_reserve.fetch_add(1, Relaxed);
    }

    /// Counts regions that were deregistered because they could not be invalidated.
    pub(super) fn not_invalidated(&self, regions: u64) {
        self.not_invalidated.fetch_add(regions, Relaxed);
    }

    /// Counts a region that was given back because nobody needed it.
    pub(super) fn given_back(&self) {
        self.given_back.fetch_add(1, Relaxed);
    }
}
