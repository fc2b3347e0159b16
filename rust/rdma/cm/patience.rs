// SPDX-License-Identifier: GPL-2.0

//! How long to wait for a peer that doesn't seem to be there.
//!
//! The fabric has no bound of its own: a device repeats a request as often as it was told, which is
//! for ever on some, and waits for ever for a peer that has no receive request.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// How often to look until it is over.
const LOOKS: u32 = 4;

/// Looks at a queue from time to time, whether its requests get on.
pub(super) struct Patience {
    /// How long requests may be under way without one of them ending, in milliseconds; 0 is for ever.
    limit: u32,
    /// How many had ended at the last look.
    ended: Atomic<usize>,
    /// How many looks in a row have found none that had.
    idle: Atomic<u32>,
}

impl Patience {
    /// Patience for so many milliseconds; 0 is for ever.
    pub(super) const fn new(limit: u32) -> Self {
        Self {
            limit,
            ended: Atomic::new(0),
            idle: Atomic::new(0),
        }
    }

    /// When to look again, in milliseconds; [`None`] if that is of no use. No look is of use that comes
    /// sooner.
    pub(super) fn next_look(&self) -> Option<u32> {
        (self.limit > 0).then(|| (self.limit / LOOKS).max(1))
    }

    /// Looks whether it is over: `under_way` requests are, and so many have `ended` so far. By one task
    /// at a time.
    pub(super) fn is_over(&self, under_way: usize, ended: usize) -> bool {
        let gets_on = self.ended.load(Relaxed) != ended;
        self.ended.store(ended, Relaxed);
        let idle = match gets_on || under_way == 0 {
            true => 0,
            false => self.idle.load(Relaxed) + 1,
        };
        self.idle.store(idle, Relaxed);
        idle > LOOKS
    }
}

#[kernel::macros::kunit_tests(rdma_cm_patience)]
mod tests {
    use super::*;

    #[test]
    fn ends_where_nothing_gets_on() {
        let patience = Patience::new(1000);
        assert_eq!(patience.next_look(), Some(250));
        // Nothing is under way, however long.
        for _ in 0..20 {
            assert!(!patience.is_over(0, 0));
        }
        // Something gets on.
        for ended in 1..20 {
            assert!(!patience.is_over(3, ended));
        }
        // No longer: it is over a whole limit after the first look that has found that.
        for _ in 0..LOOKS {
            assert!(!patience.is_over(3, 19));
        }
        assert!(patience.is_over(3, 19));
        // What gets on in between begins anew.
        assert!(!patience.is_over(3, 20));
        assert!(!patience.is_over(3, 20));
    }

    #[test]
    fn for_ever() {
        assert_eq!(Patience::new(0).next_look(), None);
        assert_eq!(Patience::new(1).next_look(), Some(1));
    }
}
