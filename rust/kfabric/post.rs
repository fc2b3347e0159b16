// SPDX-License-Identifier: GPL-2.0

//! One transfer as a value: the operation, the local memory, and the peer's memory.
//!
//! The module uses no objects and no providers. All functions may be called in any context.

pub(crate) mod injected;
pub(crate) mod local;
pub(crate) mod op;
pub(crate) mod remote;

use self::{
    local::LocalMemory,
    op::{
        Op,
        PostFlags, //
    },
    remote::RemoteMemory, //
};
use crate::region::memory::MappedAs;

/// Most pieces of one transfer.
pub(crate) const MAX_PIECES: usize = 16;

/// Most bytes that one transfer can inject.
pub const MAX_INJECT: usize = 64;

/// The rules of a domain for memory at this side; constant.
#[derive(Clone, Copy, Debug)]
pub struct LocalRules {
    /// A part of a region goes by the region's descriptor. Otherwise its memory is found each time.
    pub by_region: bool,
    /// The kind of addresses in a mapped scatterlist.
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

/// A transfer that a consumer posts.
///
/// Only the core creates one. A provider can't keep it, because the memory is valid only until the transfer
/// ends.
#[non_exhaustive]
pub struct TransferRequest {
    /// The operation.
    pub op: Op,
    /// The local memory.
    pub local: LocalMemory,
    /// The peer's memory, which is empty for a message.
    pub remote: RemoteMemory,
    /// The flags.
    pub flags: PostFlags,
}

impl TransferRequest {
    /// Creates a transfer without memory.
    #[inline]
    pub(crate) fn new(op: Op, flags: PostFlags) -> Self {
        Self {
            op,
            local: LocalMemory::none(),
            remote: RemoteMemory::none(),
            flags,
        }
    }

    /// Calls `f` with a transfer for each piece of the peer's memory, in order, until `f` returns an error.
    /// The first transfer has the fence of `self`, and the last one its immediate data.
    pub fn each<E>(&self, mut f: impl FnMut(&Self) -> Result<(), E>) -> Result<(), E> {
        let pieces = self.remote.pieces();
        let mut at = 0;
        for (index, piece) in pieces.iter().enumerate() {
            f(&Self {
                op: match index + 1 == pieces.len() {
                    true => self.op,
                    false => self.op.without_data(),
                },
                local: self.local.part(at, piece.len),
                remote: RemoteMemory::of(*piece),
                flags: match index {
                    0 => self.flags,
                    _ => self.flags.without_fence(),
                },
            })?;
            at += piece.len;
        }
        Ok(())
    }
}
