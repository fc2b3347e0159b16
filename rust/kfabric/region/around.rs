// SPDX-License-Identifier: GPL-2.0

//! What was found of the surroundings of memory.

use super::judge::Use;
use core::cell::Cell;
use kfi_bindings::kfi_helper_walk;

/// What was found of the surroundings of memory, and holds for other memory there: for as long as a call
/// takes that registers several regions, as it holds from a region's first page to its last.
pub(crate) struct Around {
    read: Cell<Known>,
    written: Cell<Known>,
}

/// As a walk through a list has it.
#[derive(Clone, Copy)]
pub(super) struct Known {
    seen: (u64, u64),
    linear: (u64, u64),
    linear_pfn: u64,
}

impl Around {
    /// Nothing yet.
    pub(crate) const fn new() -> Self {
        const NOTHING: Known = Known {
            seen: (0, 0),
            linear: (0, 0),
            linear_pfn: 0,
        };
        Self {
            read: Cell::new(NOTHING),
            written: Cell::new(NOTHING),
        }
    }

    /// What holds for memory that is used so.
    pub(super) fn of(&self, memory: Use) -> &Cell<Known> {
        match memory.writes() {
            true => &self.written,
            false => &self.read,
        }
    }
}

impl Known {
    /// What a walk has found.
    #[inline]
    pub(super) fn by(walk: &kfi_helper_walk) -> Self {
        Self {
            seen: (walk.seen.first, walk.seen.end),
            linear: (walk.linear, walk.linear_len),
            linear_pfn: walk.linear_pfn,
        }
    }

    /// Lets another walk, for memory that is used likewise, begin with it.
    #[inline]
    pub(super) fn tell(self, walk: &mut kfi_helper_walk) {
        (walk.seen.first, walk.seen.end) = self.seen;
        (walk.linear, walk.linear_len) = self.linear;
        walk.linear_pfn = self.linear_pfn;
    }
}
