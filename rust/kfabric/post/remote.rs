// SPDX-License-Identifier: GPL-2.0

//! The memory at the peer's side of a transfer, as its device is told of it.

use crate::{
    region::rawkey::{
        map::KeyMap,
        RemotePiece,
        MAPPED, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal,
        vec::ArrayVec, //
    }, //
};

/// Most pieces of the peer's memory in one transfer.
pub const MAX_REMOTE: usize = 16;

/// The peer's memory of a transfer: its pieces, in order. Together they have as many bytes as the
/// transfer moves.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMemory {
    pieces: ArrayVec<RemotePiece, MAX_REMOTE>,
}

impl RemoteMemory {
    /// Makes a list without pieces, for transfers that use no memory that the peer has told of.
    #[inline]
    pub(crate) fn none() -> Self {
        Self {
            pieces: ArrayVec::new(),
        }
    }

    /// Makes a list of one piece.
    pub(crate) fn of(piece: RemotePiece) -> Self {
        let mut memory = Self::none();
        // There is room.
        let _ = memory.push(piece, 1);
        memory
    }

    /// Returns the pieces. Unless it is the only one, none is empty.
    pub fn pieces(&self) -> &[RemotePiece] {
        &self.pieces
    }

    /// Adds `len` bytes of what a key leads to; as one piece, or as several if the key is that of a
    /// mapped raw key. Nothing is added for nothing, but to nothing. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the addresses wrap, or are not within what was mapped.
    /// - `ENOKEY`: nothing was mapped by that key.
    /// - `E2BIG`: these are more pieces than `most`.
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
        // One that was empty makes room.
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
    use kernel::prelude::*;

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
        // An empty one stays as long as it is alone.
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
