// SPDX-License-Identifier: GPL-2.0

//! Numbers by chance, for unit tests.

use crate::support::{
    num::widen,
    random, //
};
use kernel::prelude::*;

/// A sequence that depends on its seed alone (splitmix64).
pub(crate) struct Chance(u64);

impl Chance {
    /// Another seed each time. It's in the log, to be put in here when a test has failed.
    pub(crate) fn new(test: &str) -> Self {
        let seed = random::number();
        pr_info!("{test}: seed {seed:#x}\n");
        Self(seed)
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.any().checked_rem(end).unwrap_or(0)
    }

    /// A place in something of so many entries.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(widen(len))).unwrap_or(0)
    }
}
