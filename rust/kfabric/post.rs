// SPDX-License-Identifier: GPL-2.0

//! One transfer as a value: the operation, the local memory, and the peer's memory.
//!
//! The module uses no objects and no providers. All functions may be called in any context.

pub(crate) mod buffers;
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

/// A transfer that a consumer posts.
///
/// Only the core creates one. A provider can't keep it, because the memory is valid only until the transfer
/// ends.
pub struct Transfer {
    pub(crate) op: Op,
    pub(crate) local: LocalMemory,
    pub(crate) remote: RemoteMemory,
    pub(crate) flags: PostFlags,
}

impl Transfer {
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

    /// Returns the operation.
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns the local memory.
    pub fn local(&self) -> &LocalMemory {
        &self.local
    }

    /// Returns the peer's memory, which is empty for a message.
    pub fn remote(&self) -> &RemoteMemory {
        &self.remote
    }

    /// Returns the flags.
    pub fn flags(&self) -> PostFlags {
        self.flags
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
