// SPDX-License-Identifier: GPL-2.0

//! One transfer as a value: the operation, its flags, the local memory, and the peer's memory.
//!
//! The module uses no objects and no providers. All functions may be called in any context.

pub(crate) mod injected;
pub(crate) mod local;
pub(crate) mod op;

pub(crate) use self::op::{
    AtomicForm,
    AtomicKind, //
};
pub use self::op::{
    Atomics,
    Op,
    PostFlags, //
};

use self::{
    injected::InjectCopy,
    local::LocalPieces, //
};
use crate::{
    prelude::*,
    region::{
        rawkey::{
            map::KeyMap,
            RemotePiece,
            MAPPED, //
        }, //
    },
    support::vec::ArrayVec, //
};
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
            local: LocalMemory::Lent(LocalPieces::none()),
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
                    _ => PostFlags {
                        fences: false,
                        ..self.flags
                    },
                },
            })?;
            at += piece.len;
        }
        Ok(())
    }
}

/// Maximum number of pieces of the peer's memory in one transfer.
pub const MAX_REMOTE: usize = 16;

/// The peer's memory of a transfer: its pieces, in order. Together they have as many bytes as the
/// transfer moves.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMemory {
    pieces: ArrayVec<RemotePiece, MAX_REMOTE>,
}

impl RemoteMemory {
    /// Creates a list without pieces.
    #[inline]
    fn none() -> Self {
        Self {
            pieces: ArrayVec::new(),
        }
    }

    /// Creates a list of one piece.
    fn of(piece: RemotePiece) -> Self {
        let mut memory = Self::none();
        // An empty list has space for one.
        let _ = memory.push(piece, 1);
        memory
    }

    /// Returns the pieces. Unless it is the only one, none is empty.
    pub fn pieces(&self) -> &[RemotePiece] {
        &self.pieces
    }

    /// Adds the memory behind a key: one piece, or several pieces if the key is a mapped raw key. Adds an
    /// empty piece to an empty list only. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the addresses wrap, or are not within the mapped memory.
    /// - `ENOKEY`: no memory is mapped by the key.
    /// - `E2BIG`: the list gets more than `most` pieces.
    pub(crate) fn add(
        &mut self,
        keys: &KeyMap,
        access: RemotePiece,
        most: usize,
    ) -> Result<(), Refusal> {
        let RemotePiece { key, base, len } = access;
        if base.checked_add(len).is_none() {
            let refusal = Refusal::new(Errno::EINVAL, c"the peer's addresses wrap");
            return Err(refusal.value(base));
        }
        match key & MAPPED {
            _ if len == 0 && !self.pieces.is_empty() => Ok(()),
            0 => self.push(access, most),
            _ => keys.each(key, base, len, |piece| self.push(piece, most)),
        }
    }

    fn push(&mut self, piece: RemotePiece, most: usize) -> Result<(), Refusal> {
        let why = c"more pieces of the peer's memory than one transfer may have";
        let too_many = Refusal::new(Errno::E2BIG, why).value(widen(most));
        // An empty piece goes when another comes.
        if self.pieces().iter().all(|piece| piece.len == 0) {
            self.pieces.clear();
        }
        if self.pieces.len() >= most {
            return Err(too_many);
        }
        self.pieces.push(piece).map_err(|_| too_many)
    }
}

#[kernel::macros::kunit_tests(kfabric_post_remote)]
mod tests {
    use super::*;

    const fn piece(base: u64, len: u64) -> RemotePiece {
        RemotePiece { key: 7, base, len }
    }

    #[test]
    fn pieces_in_order() -> Result {
        let keys = KBox::pin_init(KeyMap::new(), GFP_KERNEL)?;
        let mut memory = RemoteMemory::none();
        let mut add = |base, len, most| {
            let added = memory.add(&keys, piece(base, len), most);
            (added.map_err(|no| no.errno()), memory.pieces().len())
        };
        // The empty piece stays until another comes.
        assert_eq!(add(9, 0, 2), (Ok(()), 1));
        assert_eq!(add(100, 8, 2), (Ok(()), 1));
        assert_eq!(add(9, 0, 2), (Ok(()), 1));
        assert_eq!(add(50, 8, 2), (Ok(()), 2));
        assert_eq!(add(70, 8, 2), (Err(Errno::E2BIG), 2));
        assert_eq!(add(u64::MAX, 8, 3), (Err(Errno::EINVAL), 2));
        assert_eq!(memory.pieces(), [piece(100, 8), piece(50, 8)]);
        Ok(())
    }
}
