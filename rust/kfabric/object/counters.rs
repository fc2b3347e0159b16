// SPDX-License-Identifier: GPL-2.0

//! Counters of domains, endpoints and shared receive contexts, for listings. They start at 0 when the object is opened.
//!
//! All functions may be called in any context.

use crate::{
    post::Op,
    prelude::*,
    support::num, //
};
use kfi_bindings as c;
use kfi_bindings::{
    kfi_helper_object,
    kfi_helper_refusals, //
};

/// The counters of a domain.
pub(crate) struct DomainCounters {
    /// Regions that were opened.
    opened: Atomic<u64>,
    /// Refused calls by [`Errno::index`].
    refusals: [Atomic<u64>; Errno::COUNT],
}

impl DomainCounters {
    /// Creates counters of 0.
    pub(super) const fn new() -> Self {
        Self {
            opened: Atomic::new(0),
            refusals: [const { Atomic::new(0) }; _],
        }
    }

    /// Counts a new region.
    pub(super) fn count_opened(&self) {
        self.opened.add(1, Relaxed);
    }

    /// Counts a refused call.
    pub(super) fn count_refusal(&self, errno: Errno) {
        if let Some(count) = errno.index().and_then(|index| self.refusals.get(index)) {
            count.add(1, Relaxed);
        }
    }

    /// Returns the number of regions that were opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// Returns the counts of errnos that are not 0.
    pub(super) fn refusals(&self) -> impl Iterator<Item = kfi_helper_refusals> + '_ {
        let counts = self.refusals.iter().map(|count| count.load(Relaxed));
        let some = counts.enumerate().filter(|(_, count)| *count > 0);
        some.map(|(index, count)| kfi_helper_refusals {
            err: Errno::number_at(index),
            count,
        })
    }
}

/// The counters of the transfers that were posted on an endpoint or a shared receive context.
pub(super) struct TransferCounters {
    transfers: [Atomic<u64>; KINDS],
    bytes: [Atomic<u64>; KINDS],
}

/// Number of kinds of transfers.
const KINDS: usize = 5;

/// Returns the number of the kind of a transfer.
pub(super) const fn kind(op: &Op) -> c::kfi_helper_op {
    match op {
        Op::Send { .. } => c::kfi_helper_op_KFI_HELPER_OP_SEND,
        Op::Receive => c::kfi_helper_op_KFI_HELPER_OP_RECEIVE,
        Op::Read => c::kfi_helper_op_KFI_HELPER_OP_READ,
        Op::Write { .. } => c::kfi_helper_op_KFI_HELPER_OP_WRITE,
        Op::Atomic { .. } => c::kfi_helper_op_KFI_HELPER_OP_ATOMIC,
    }
}

impl TransferCounters {
    /// Creates counters of 0.
    pub(super) const fn new() -> Self {
        Self {
            transfers: [const { Atomic::new(0) }; _],
            bytes: [const { Atomic::new(0) }; _],
        }
    }

    /// Counts a transfer that was posted.
    #[inline(always)]
    pub(super) fn count(&self, op: &Op, bytes: u64) {
        let kind = num::index(kind(op));
        if let (Some(transfers), Some(of_kind)) = (self.transfers.get(kind), self.bytes.get(kind)) {
            transfers.add(1, Relaxed);
            of_kind.add(bytes, Relaxed);
        }
    }

    /// Adds the counters to a listing.
    pub(super) fn describe(&self, about: &mut kfi_helper_object) {
        let [sends, receives, reads, writes, atomics] =
            self.transfers.each_ref().map(|count| count.load(Relaxed));
        let [sent, _, fetched, written, _] = self.bytes.each_ref().map(|count| count.load(Relaxed));
        about.counters = [
            sends, sent, receives, reads, fetched, writes, written, atomics,
        ];
    }
}
