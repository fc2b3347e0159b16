// SPDX-License-Identifier: GPL-2.0

//! Device regions for registrations that must not fail for want of memory.

use super::size::Size;
use kfabric::vec::Fifo;
use rdma::mr::FastMr;

/// As many device regions as were promised, less those that are in use.
pub(super) struct Reserve {
    pub(super) size: Size,
    pub(super) promised: usize,
    /// How many regions have been begun and not ended.
    pub(super) in_use: usize,
    pub(super) line: Fifo<FastMr>,
}

impl Reserve {
    /// How many are missing, because the device took them back for good.
    pub(super) fn missing(&self) -> usize {
        self.promised
            .saturating_sub(self.in_use)
            .saturating_sub(self.line.len())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }
}
