// SPDX-License-Identifier: GPL-2.0

//! What peers do with eight bytes of a region at once.

/// How many bytes an atomic operation goes to; their address is a multiple of that.
pub(crate) const WORD: usize = size_of::<u64>();

/// What is done with eight bytes of a peer's, in the peer's order, at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// They become this.
    Write(u64),
    /// This is added to them.
    Add(u64),
    /// They become `new`, if they are as expected.
    CompareSwap {
        /// What they must be.
        expected: u64,
        /// What they become.
        new: u64,
    },
}

impl AtomicOp {
    /// Returns whether the operation modifies eight bytes that were `before`. Any context.
    pub const fn modifies(self, before: u64) -> bool {
        match self {
            Self::Write(_) => true,
            Self::Add(by) => by != 0,
            Self::CompareSwap { expected, .. } => before == expected,
        }
    }
}
