// SPDX-License-Identifier: GPL-2.0

//! Places in a peer's memory.

/// Where to read or write in the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The address: the [base](super::Mr::base) of the peer's region, and an offset.
    pub addr: u64,
    /// The region's [key](super::Mr::key).
    pub key: u64,
}
