// SPDX-License-Identifier: GPL-2.0

//! One transfer as a value: the operation, the local memory, and the peer's memory.
//!
//! The module uses no objects and no providers. All functions may be called in any context.

pub(crate) mod injected;
pub(crate) mod local;
pub(crate) mod op;
pub(crate) mod remote;

use self::{
    injected::InjectCopy,
    local::LocalPieces,
    op::{
        Op,
        PostFlags, //
    },
    remote::RemoteMemory, //
};
use crate::support::num::widen;

/// The local memory of a transfer.
#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box needs an allocation, which may fail, in any context"
)]
pub enum LocalMemory {
    /// The consumer's memory, which the consumer leaves alone until the transfer has ended.
    Lent(LocalPieces),
    /// A copy of the bytes. The consumer may reuse its memory after the posting call.
    Injected(InjectCopy),
}

impl LocalMemory {
    /// Creates a description of no memory.
    #[inline]
    pub(crate) fn none() -> Self {
        Self::Lent(LocalPieces::none())
    }

    /// Returns the length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Lent(local) => local.bytes(),
            Self::Injected(copy) => widen(copy.bytes().len()),
        }
    }

    /// Returns at most `len` bytes from `at` on.
    fn part(&self, at: u64, len: u64) -> Self {
        match self {
            Self::Lent(local) => Self::Lent(local.part(at, len)),
            Self::Injected(copy) => Self::Injected(copy.part(at, len)),
        }
    }
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
