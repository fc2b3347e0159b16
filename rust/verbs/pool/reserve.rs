// SPDX-License-Identifier: GPL-2.0

//! The parts that a pool keeps for regions that must not fail for lack of memory.

use super::lines::Size;
use crate::prelude::*;
use kfabric::{
    vec::Fifo,
    MrExtMemory, //
};
use rdma::sg::SpareTable;

/// The parts of `promised` regions, less those that are in use.
pub(super) struct Reserve {
    pub(super) size: Size,
    pub(super) promised: usize,
    /// How many regions have begun and not ended.
    pub(super) in_use: usize,
    pub(super) mrs: Fifo<FastMr>,
    /// A table in use stays in line, and is passed over.
    pub(super) tables: Fifo<SpareTable>,
    pub(super) memory: KVVec<MrExtMemory>,
}

impl Reserve {
    /// Returns how many device regions are missing, because the device took them back for good.
    pub(super) fn missing(&self) -> usize {
        self.promised
            .saturating_sub(self.in_use)
            .saturating_sub(self.mrs.len())
    }

    /// Returns how many device regions there are.
    pub(super) fn len(&self) -> usize {
        self.mrs.len()
    }

    /// Checks whether a device region of this size is of use here, and fewer are there than were promised.
    pub(super) fn takes(&self, size: Size, mr: &FastMr) -> bool {
        // A region of the reserve may have any rights.
        size == self.size && !mr.keeps_rights() && self.mrs.len() < self.promised
    }

    /// Checks whether a region of this size is in use.
    pub(super) fn has_in_use(&self, size: Size) -> bool {
        size == self.size && self.in_use > 0
    }

    /// Adds a device region that no peer can reach, and that is [of use](Self::takes). Returns it without memory for it.
    pub(super) fn put(&mut self, mr: FastMr) -> Result<(), FastMr> {
        self.mrs.push(mr)
    }
}
