// SPDX-License-Identifier: GPL-2.0

//! The operation of a transfer, its flags, and the atomic operations of endpoints.
//!
//! Devices have two atomic operations: fetch and add, and compare and swap. A provider in software may have
//! writes, too. A consumer's `KFI_ATOMIC_READ` is a fetch and add of 0.

use crate::{
    prelude::*,
    region::cpu_memory::AtomicOp, //
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
    /// Sends a message to the peer.
    Send {
        /// Immediate data for the peer's completion queue.
        data: Option<u64>,
        /// The key that the peer's device invalidates. A message with a key has no data.
        invalidates: Option<u64>,
    },
    /// Receives a message of the peer.
    Receive,
    /// Reads the peer's memory.
    Read,
    /// Writes the peer's memory.
    Write {
        /// Immediate data for the peer's completion queue.
        data: Option<u64>,
    },
    /// Changes eight bytes of the peer's memory atomically.
    Atomic {
        /// The atomic operation.
        what: AtomicOp,
        /// The local memory gets the old value. Otherwise there is no local memory.
        fetches: bool,
    },
}

impl Op {
    /// Returns the name of the operation, by which refusals name its calls.
    pub const fn name(&self) -> &'static CStr {
        match self {
            Self::Send { .. } => c"send",
            Self::Receive => c"recv",
            Self::Read => c"read",
            Self::Write { .. } => c"write",
            Self::Atomic { .. } => c"atomic",
        }
    }

    /// Checks whether the operation writes the local memory.
    pub const fn writes_local(&self) -> bool {
        match self {
            Self::Receive | Self::Read => true,
            Self::Send { .. } | Self::Write { .. } => false,
            Self::Atomic { fetches, .. } => *fetches,
        }
    }

    /// Returns the same operation without immediate data.
    pub(super) const fn without_data(self) -> Self {
        match self {
            Self::Write { .. } => Self::Write { data: None },
            other => other,
        }
    }
}

/// The atomic operations that endpoints support. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Atomics {
    /// [`AtomicOp::Write`].
    pub write: bool,
    /// [`AtomicOp::Add`].
    pub add: bool,
    /// [`AtomicOp::CompareSwap`].
    pub compare_swap: bool,
}

/// The family of an atomic call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicForm {
    /// `kfi_atomic()`, without a result.
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
    /// A fetch and add of 0.
    Read,
    CompareSwap,
}

impl Atomics {
    /// Checks whether endpoints support any operation.
    pub const fn any(self) -> bool {
        self.write || self.add || self.compare_swap
    }

    /// Finds the operation on one element.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: endpoints don't support the operation or the data type.
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

/// The flags of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostFlags {
    /// The consumer wants a completion, also from a queue with selective completions (`KFI_COMPLETION`).
    pub(crate) completes: bool,
    /// More transfers follow at once, so the device may learn of this one later (`KFI_MORE`).
    pub more: bool,
    /// The caller may reuse the bytes after the posting call (`KFI_INJECT`).
    pub(crate) injects: bool,
    /// The transfer waits at least until all earlier reads and atomic operations have ended (`KFI_FENCE`).
    pub fences: bool,
    /// The peer's completion queue gets immediate data (`KFI_REMOTE_CQ_DATA`).
    pub(crate) has_data: bool,
    /// The peer's device invalidates a key (`KFI_INVALIDATE`).
    pub(crate) invalidates: bool,
}

impl PostFlags {
    const COMPLETION: u64 = widen_u32(c::KFI_COMPLETION);
    const MORE: u64 = widen_u32(c::KFI_MORE);
    const INJECT: u64 = widen_u32(c::KFI_INJECT);
    const FENCE: u64 = widen_u32(c::KFI_FENCE);
    const REMOTE_CQ_DATA: u64 = widen_u32(c::KFI_REMOTE_CQ_DATA);
    const INVALIDATE: u64 = c::KFI_INVALIDATE;
    /// The completion levels, which change nothing.
    const LEVELS: u64 =
        widen_u32(c::KFI_INJECT_COMPLETE | c::KFI_TRANSMIT_COMPLETE | c::KFI_DELIVERY_COMPLETE);

    /// The flags of a request that goes to the peer.
    pub(crate) const TRANSMIT: u64 = Self::COMPLETION
        | Self::MORE
        | Self::INJECT
        | Self::FENCE
        | Self::REMOTE_CQ_DATA
        | Self::LEVELS;
    /// The flags of a message.
    pub(crate) const SEND: u64 = Self::TRANSMIT | Self::INVALIDATE;
    /// The flags of a read, which has no bytes to inject and no immediate data.
    pub(crate) const READ: u64 = Self::TRANSMIT & !(Self::INJECT | Self::REMOTE_CQ_DATA);
    /// The flags of an atomic operation, which has no immediate data. The caller may always reuse the
    /// operands after the posting call.
    pub(crate) const ATOMIC: u64 = Self::TRANSMIT & !Self::REMOTE_CQ_DATA;
    /// The flags of a receive.
    pub(crate) const RECEIVE: u64 = Self::COMPLETION | Self::MORE;

    const ALL: u64 = Self::SEND | Self::RECEIVE;

    /// Parses the flags of a call that accepts the flags in `known`.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: the call doesn't accept a flag, or two flags exclude each other.
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
        Ok(Self::masked(flags, known))
    }

    /// Parses the default flags of an endpoint for a call that accepts the flags in `known`.
    pub(crate) const fn masked(flags: u64, known: u64) -> Self {
        let flags = flags & known;
        Self {
            completes: flags & Self::COMPLETION != 0,
            more: flags & Self::MORE != 0,
            injects: flags & Self::INJECT != 0,
            fences: flags & Self::FENCE != 0,
            has_data: flags & Self::REMOTE_CQ_DATA != 0,
            invalidates: flags & Self::INVALIDATE != 0,
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_post_op)]
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
        assert!(parse(more, PostFlags::RECEIVE).is_ok_and(|flags| flags.more));
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
        assert!(parse(invalidates, PostFlags::SEND).is_ok_and(|flags| flags.invalidates));
        assert_eq!(
            parse(invalidates, PostFlags::TRANSMIT),
            Err(Errno::EBADFLAGS)
        );
        assert!(!PostFlags::masked(PostFlags::INJECT, PostFlags::READ).injects);
    }
}
