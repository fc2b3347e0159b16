// SPDX-License-Identifier: GPL-2.0

//! What was found of the surroundings of memory.

use super::judge::Use;
use core::cell::Cell;
use kfi_bindings::{
    kfi_helper_around,
    kfi_helper_seen, //
};

/// What was found of the surroundings of memory, and holds for other memory there: for as long as a call
/// takes that registers several regions, as it holds from a region's first page to its last.
pub(crate) struct Around {
    read: Cell<kfi_helper_around>,
    written: Cell<kfi_helper_around>,
}

/// Nothing yet.
pub(super) const NOTHING: kfi_helper_around = kfi_helper_around {
    seen: kfi_helper_seen { first: 0, end: 0 },
    linear: 0,
    linear_len: 0,
    linear_pfn: 0,
};

impl Around {
    /// Nothing yet.
    pub(crate) const fn new() -> Self {
        Self {
            read: Cell::new(NOTHING),
            written: Cell::new(NOTHING),
        }
    }

    /// What holds for memory that is used so.
    pub(super) fn of(&self, memory: Use) -> &Cell<kfi_helper_around> {
        match memory.writes() {
            true => &self.written,
            false => &self.read,
        }
    }
}
