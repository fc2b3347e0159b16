// SPDX-License-Identifier: GPL-2.0

//! What a transfer does.

use crate::{
    region::{
        access::Access,
        atomic::AtomicOp, //
    },
    support::num::widen_u32, //
};
use kfi_bindings as c;

/// What is to be done with the memory at this side.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// It is sent to the peer, perhaps with some data for its completion queue, or to have a key of the
    /// peer's invalidated.
    Send {
        /// Those data.
        data: Option<u64>,
        /// That key; then there are no data.
        invalidates: Option<u64>,
    },
    /// A message of the peer's goes there.
    Receive,
    /// It is read from the peer's memory.
    Read,
    /// It is written to the peer's memory, perhaps with some data for its completion queue.
    Write {
        /// Those data.
        data: Option<u64>,
    },
    /// It gets what eight bytes of the peer's memory were before something was done with them at once.
    Atomic {
        /// What that is.
        what: AtomicOp,
        /// Otherwise there is no memory at this side.
        fetches: bool,
    },
}

impl Op {
    /// The right that a region at this side needs.
    pub(crate) const fn needs(&self) -> Access {
        match self {
            Self::Send { .. } => Access::SEND,
            Self::Receive => Access::RECV,
            Self::Read | Self::Atomic { fetches: true, .. } => Access::READ,
            Self::Write { .. } | Self::Atomic { .. } => Access::WRITE,
        }
    }

    /// Does it write to the memory at this side?
    pub const fn writes_local(&self) -> bool {
        match self {
            Self::Receive | Self::Read => true,
            Self::Send { .. } | Self::Write { .. } => false,
            Self::Atomic { fetches, .. } => *fetches,
        }
    }

    /// The same, with nothing for the peer's completion queue.
    pub(crate) const fn without_data(self) -> Self {
        match self {
            Self::Write { .. } => Self::Write { data: None },
            other => other,
        }
    }

    /// What the entry of a completion queue says of it.
    pub(crate) const fn flags(&self) -> u64 {
        let flags = match self {
            Self::Send { .. } => c::KFI_MSG | c::KFI_SEND,
            Self::Receive => c::KFI_MSG | c::KFI_RECV,
            Self::Read => c::KFI_RMA | c::KFI_READ,
            Self::Write { .. } => c::KFI_RMA | c::KFI_WRITE,
            Self::Atomic { fetches: true, .. } => c::KFI_ATOMIC | c::KFI_READ,
            Self::Atomic { .. } => c::KFI_ATOMIC | c::KFI_WRITE,
        };
        widen_u32(flags)
    }
}
