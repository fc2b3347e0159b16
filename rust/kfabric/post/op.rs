// SPDX-License-Identifier: GPL-2.0

//! The operation of a transfer, its flags, and the atomic operations of endpoints.
//!
//! Devices have two atomic operations: fetch and add, and compare and swap. A provider in software
//! may have writes, too. A consumer's `KFI_ATOMIC_READ` is a fetch and add of 0.

use crate::{
    region::{
        access::Access,
        cpu_memory::AtomicOp, //
    },
    support::{
        errno::Errno,
        num::widen_u32,
        refusal::Refusal, //
    }, //
};
use kfi_bindings as c;
use kfi_bindings::{
    kfi_datatype,
    kfi_datatype_KFI_INT64 as INT64,
    kfi_datatype_KFI_UINT64 as UINT64,
    kfi_op,
    kfi_op_KFI_ATOMIC_READ as READ,
    kfi_op_KFI_ATOMIC_WRITE as WRITE,
    kfi_op_KFI_CSWAP as CSWAP,
    kfi_op_KFI_SUM as SUM, //
};

/// The operation of a transfer.
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
        /// The atomic operation.
        what: AtomicOp,
        /// Otherwise there is no memory at this side.
        fetches: bool,
    },
}

impl Op {
    /// Returns the right that a region at this side needs.
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

    /// Returns the same operation, with nothing for the peer's completion queue.
    pub(crate) const fn without_data(self) -> Self {
        match self {
            Self::Write { .. } => Self::Write { data: None },
            other => other,
        }
    }

    /// Returns the flags of the operation in a completion queue entry.
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

/// Which atomic operations endpoints have. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Atomics {
    /// [`AtomicOp::Write`].
    pub write: bool,
    /// [`AtomicOp::Add`].
    pub add: bool,
    /// [`AtomicOp::CompareSwap`].
    pub compare_swap: bool,
}

/// Which family of calls something is asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicForm {
    /// `kfi_atomic()`: nothing comes back.
    Plain,
    /// `kfi_fetch_atomic()`.
    Fetch,
    /// `kfi_compare_atomic()`.
    Compare,
}

/// An atomic operation without its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicKind {
    Write,
    Add,
    /// Adding nothing.
    Read,
    CompareSwap,
}

impl Atomics {
    /// Checks whether there is any operation.
    pub const fn any(self) -> bool {
        self.write || self.add || self.compare_swap
    }

    /// Finds an operation, of one element.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: there is none for that.
    pub(crate) fn find(
        self,
        form: AtomicForm,
        datatype: kfi_datatype,
        op: kfi_op,
    ) -> Result<AtomicKind, Refusal> {
        // Sums of both types are the same bits.
        if !matches!(datatype, INT64 | UINT64) {
            let refusal = Refusal::new(Errno::EOPNOTSUPP, c"atomic operation on this type");
            return Err(refusal.value(datatype.into()));
        }
        let (there, asked) = match (form, op) {
            (AtomicForm::Plain, WRITE) => (self.write, AtomicKind::Write),
            (AtomicForm::Plain | AtomicForm::Fetch, SUM) => (self.add, AtomicKind::Add),
            (AtomicForm::Fetch, READ) => (self.add, AtomicKind::Read),
            (AtomicForm::Compare, CSWAP) => (self.compare_swap, AtomicKind::CompareSwap),
            _ => (false, AtomicKind::Read),
        };
        let none = Refusal::new(Errno::EOPNOTSUPP, c"no such atomic operation here");
        there.then_some(asked).ok_or(none.value(op.into()))
    }
}

/// How a transfer is to be done, besides what it does.
///
/// # Invariants
///
/// No bits but those that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostFlags(u64);

impl PostFlags {
    const COMPLETION: u64 = widen_u32(c::KFI_COMPLETION);
    const MORE: u64 = widen_u32(c::KFI_MORE);
    const INJECT: u64 = widen_u32(c::KFI_INJECT);
    const FENCE: u64 = widen_u32(c::KFI_FENCE);
    const REMOTE_CQ_DATA: u64 = widen_u32(c::KFI_REMOTE_CQ_DATA);
    const DELIVERY: u64 = widen_u32(c::KFI_DELIVERY_COMPLETE);
    const INVALIDATE: u64 = c::KFI_INVALIDATE;
    const SENT: u64 = widen_u32(c::KFI_INJECT_COMPLETE | c::KFI_TRANSMIT_COMPLETE);

    /// The flags of a request that goes to the peer.
    pub(crate) const TRANSMIT: u64 = Self::COMPLETION
        | Self::MORE
        | Self::INJECT
        | Self::FENCE
        | Self::REMOTE_CQ_DATA
        | Self::DELIVERY
        | Self::SENT;
    /// The flags of a message.
    pub(crate) const SEND: u64 = Self::TRANSMIT | Self::INVALIDATE;
    /// The flags of a request that reads from the peer. There is nothing to inject, and nobody
    /// would get data.
    pub(crate) const READ: u64 = Self::TRANSMIT & !(Self::INJECT | Self::REMOTE_CQ_DATA);
    /// The flags of an atomic operation. Nobody would get data. The caller may always reuse its
    /// operands when posting returns.
    pub(crate) const ATOMIC: u64 = Self::TRANSMIT & !Self::REMOTE_CQ_DATA;
    /// The flags of a request that waits for the peer.
    pub(crate) const RECEIVE: u64 = Self::COMPLETION | Self::MORE;

    const ALL: u64 = Self::SEND | Self::RECEIVE;

    /// Takes the flags of a call, which may be those in `known` only.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: there are other flags, or flags that exclude each other.
    pub(crate) fn parse(flags: u64, known: u64) -> Result<Self, Refusal> {
        let unknown = flags & !(known & Self::ALL);
        if unknown != 0 {
            let refusal = Refusal::new(Errno::EBADFLAGS, c"flag not supported by this transfer");
            return Err(refusal.value(unknown));
        }
        const EITHER: u64 = PostFlags::INVALIDATE | PostFlags::REMOTE_CQ_DATA;
        if flags & EITHER == EITHER {
            let refusal = Refusal::new(Errno::EBADFLAGS, c"either data or a key to be invalidated");
            return Err(refusal.value(flags));
        }
        // INVARIANT: Just checked.
        Ok(Self(flags))
    }

    /// Takes those flags of an endpoint that are in `known`.
    pub(crate) const fn default(flags: u64, known: u64) -> Self {
        // INVARIANT: Masked.
        Self(flags & known & Self::ALL)
    }

    /// Returns the flags of a call without flags, whose bytes the caller may reuse when it returns.
    pub(crate) const fn injected() -> Self {
        // INVARIANT: One of them.
        Self(Self::INJECT)
    }

    /// Returns the flags of a transfer with nothing to inject.
    pub(crate) const fn without_inject(self) -> Self {
        // INVARIANT: One less.
        Self(self.0 & !Self::INJECT)
    }

    /// Returns the flags of a transfer behind one that waits for the earlier ones.
    pub(crate) const fn without_fence(self) -> Self {
        // INVARIANT: One less.
        Self(self.0 & !Self::FENCE)
    }

    /// Does the consumer want an entry in its completion queue, where it wants some only?
    pub(crate) const fn completes(self) -> bool {
        self.0 & Self::COMPLETION != 0
    }

    /// Checks whether more transfers follow at once, so that the device needn't be told yet.
    pub const fn more(self) -> bool {
        self.0 & Self::MORE != 0
    }

    /// Checks whether the caller may reuse the bytes when posting returns.
    pub(crate) const fn injects(self) -> bool {
        self.0 & Self::INJECT != 0
    }

    /// Checks whether all reads that were posted earlier must have ended first.
    pub const fn fences(self) -> bool {
        self.0 & Self::FENCE != 0
    }

    /// Does the peer's device invalidate a key with it?
    pub(crate) const fn invalidates(self) -> bool {
        self.0 & Self::INVALIDATE != 0
    }

    /// Does the peer's completion queue get data with it?
    pub(crate) const fn has_data(self) -> bool {
        self.0 & Self::REMOTE_CQ_DATA != 0
    }
}

#[kernel::macros::kunit_tests(kfabric_post_atomic)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is() {
        let hardware = Atomics {
            add: true,
            compare_swap: true,
            ..Atomics::default()
        };
        let find = |form, op| hardware.find(form, UINT64, op).map_err(|no| no.errno());
        assert_eq!(find(AtomicForm::Plain, SUM), Ok(AtomicKind::Add));
        assert_eq!(find(AtomicForm::Fetch, READ), Ok(AtomicKind::Read));
        assert_eq!(
            find(AtomicForm::Compare, CSWAP),
            Ok(AtomicKind::CompareSwap)
        );
        assert_eq!(find(AtomicForm::Plain, WRITE), Err(Errno::EOPNOTSUPP));
        assert_eq!(find(AtomicForm::Plain, READ), Err(Errno::EOPNOTSUPP));
        assert_eq!(find(AtomicForm::Compare, SUM), Err(Errno::EOPNOTSUPP));
        assert!(hardware.find(AtomicForm::Fetch, INT64, SUM).is_ok());
        assert!(hardware.find(AtomicForm::Fetch, UINT64 + 1, SUM).is_err());
        assert!(!Atomics::default().any() && hardware.any());
    }

    #[test]
    fn unknown_ones_are_refused() {
        let parse = |flags, known| PostFlags::parse(flags, known).map_err(|no| no.errno());
        let more = PostFlags::MORE;
        assert!(parse(more, PostFlags::RECEIVE).is_ok_and(|flags| flags.more()));
        assert_eq!(
            parse(PostFlags::FENCE, PostFlags::RECEIVE),
            Err(Errno::EBADFLAGS)
        );
        assert_eq!(parse(1 << 63, PostFlags::TRANSMIT), Err(Errno::EBADFLAGS));
        assert_eq!(parse(1 << 63, u64::MAX), Err(Errno::EBADFLAGS));
        assert_eq!(
            parse(PostFlags::INJECT, PostFlags::READ),
            Err(Errno::EBADFLAGS)
        );
        let both = PostFlags::INVALIDATE | PostFlags::REMOTE_CQ_DATA;
        assert_eq!(parse(both, PostFlags::SEND), Err(Errno::EBADFLAGS));
        let invalidates = PostFlags::INVALIDATE;
        assert!(parse(invalidates, PostFlags::SEND).is_ok_and(|flags| flags.invalidates()));
        assert_eq!(
            parse(invalidates, PostFlags::TRANSMIT),
            Err(Errno::EBADFLAGS)
        );
        assert!(!PostFlags::default(PostFlags::INJECT, PostFlags::READ).injects());
    }
}
