// SPDX-License-Identifier: GPL-2.0

//! What a transfer does.

use crate::region::{
    access::Access,
    rawkey::RemotePiece, //
};
use crate::support::num::widen_u32;
use kfi_bindings as c;

/// What is to be done with the memory at this side.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// It is sent to the peer, perhaps with some data for its completion queue.
    Send {
        /// Those data.
        data: Option<u64>,
    },
    /// A message of the peer's goes there.
    Receive,
    /// It is read from the peer's memory.
    Read {
        /// What of it; as long as the memory at this side.
        from: RemotePiece,
    },
    /// It is written to the peer's memory, perhaps with some data for its completion queue.
    Write {
        /// Where there; as long as the memory at this side.
        to: RemotePiece,
        /// Those data.
        data: Option<u64>,
    },
}

impl Op {
    /// The right that a region at this side needs.
    pub(crate) const fn needs(&self) -> Access {
        match self {
            Self::Send { .. } => Access::SEND,
            Self::Receive => Access::RECV,
            Self::Read { .. } => Access::READ,
            Self::Write { .. } => Access::WRITE,
        }
    }

    /// Does it write to the memory at this side?
    pub(crate) const fn writes_local(&self) -> bool {
        matches!(self, Self::Receive | Self::Read { .. })
    }

    /// What the entry of a completion queue says of it.
    pub(crate) const fn flags(&self) -> u64 {
        widen_u32(match self {
            Self::Send { .. } => c::KFI_MSG | c::KFI_SEND,
            Self::Receive => c::KFI_MSG | c::KFI_RECV,
            Self::Read { .. } => c::KFI_RMA | c::KFI_READ,
            Self::Write { .. } => c::KFI_RMA | c::KFI_WRITE,
        })
    }
}
