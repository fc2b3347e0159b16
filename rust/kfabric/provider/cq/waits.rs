// SPDX-License-Identifier: GPL-2.0

//! Who waits for a completion queue, and what for.

use super::ring::Ring;

/// Those who wait.
///
/// # Invariants
///
/// `wake_at` is not above the threshold of any waiter that sleeps and was not notified.
pub(super) struct Waits {
    /// How many wait.
    pub(super) waiting: usize,
    /// At how many entries they are to be woken, or when there is a failure.
    wake_at: Option<usize>,
    /// How often they were called back.
    signals: u64,
    /// Nobody waited when they were; who waits next is to come back at once.
    kept: bool,
}

impl Waits {
    /// Nobody waits.
    pub(super) const NONE: Self = Self {
        waiting: 0,
        wake_at: None,
        signals: 0,
        kept: false,
    };

    /// Something has come; returns whether waiters are to be woken. Any context.
    pub(super) fn came(&mut self, ring: &Ring) -> bool {
        let wake = |at: &mut usize| ring.len() >= *at || ring.has_failure();
        // INVARIANT: If it is gone, all are notified.
        self.wake_at.take_if(wake).is_some()
    }

    /// A waiter is about to sleep until there are so many entries. Any context.
    pub(super) fn wake_at(&mut self, threshold: usize) {
        // INVARIANT: Not above this threshold, nor above what it was for others.
        self.wake_at = Some(self.wake_at.map_or(threshold, |at| at.min(threshold)));
    }

    /// Calls all back who wait, or the next who is going to; returns whether they are to be woken.
    /// Any context.
    pub(super) fn signal(&mut self) -> bool {
        if self.waiting == 0 {
            self.kept = true;
            return false;
        }
        self.signals = self.signals.wrapping_add(1);
        // INVARIANT: All are notified.
        self.wake_at.take().is_some()
    }

    /// Was a waiter called back who finds in `seen` what it has found there before? Any context.
    pub(super) fn is_signalled(&mut self, seen: &mut Option<u64>) -> bool {
        let before = *seen.get_or_insert(self.signals);
        before != self.signals || core::mem::take(&mut self.kept)
    }
}
