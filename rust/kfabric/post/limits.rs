// SPDX-License-Identifier: GPL-2.0

//! What one transfer can be.

use crate::region::memory::MappedAs;

/// Most pieces of one transfer.
pub(crate) const MAX_PIECES: usize = 16;

/// Most bytes that one transfer can inject.
pub const MAX_INJECT: usize = 64;

/// What a domain can do with memory at this side; constant.
#[derive(Clone, Copy, Debug)]
pub struct LocalRules {
    /// A part of a region goes by the region's descriptor. Otherwise its memory is found each time.
    pub by_region: bool,
    /// What the addresses in a mapped scatterlist are.
    pub mapped: MappedAs,
    /// The device may be able to reach memory of other PCI devices.
    pub peer_to_peer: bool,
    /// Most segments.
    pub segments: usize,
    /// Most pieces; at most 16.
    pub pieces: usize,
    /// Most bytes.
    pub bytes: u64,
}
