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

/// The errno of a call that the consumer may try again. It counts as a retry, not as a refusal.
const AGAIN: u32 = Errno::EAGAIN.to_c().unsigned_abs();

/// The counters of a domain.
pub(crate) struct DomainCounters {
    /// Regions that were opened.
    opened: Atomic<u64>,
    /// Calls that returned each errno. A larger errno counts as `EOTHER`.
    by_errno: KBox<[Atomic<u64>; num::index(c::KFI_ERRNO_MAX)]>,
}

impl DomainCounters {
    /// Creates counters of 0. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub(super) fn new() -> Result<Self, Refusal> {
        let none = pin_init::init_array_from_fn(|_| Atomic::new(0));
        Ok(Self {
            opened: Atomic::new(0),
            by_errno: KBox::init(none, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
        })
    }

    /// Counts a new region.
    pub(super) fn count_opened(&self) {
        self.opened.add(1, Relaxed);
    }

    /// Counts a refused call, or a retry (`EAGAIN`).
    pub(super) fn count_refusal(&self, errno: Errno) {
        let at = |errno: Errno| self.by_errno.get(num::index(errno.to_c().unsigned_abs()));
        if let Some(count) = at(errno).or(at(Errno::EOTHER)) {
            count.add(1, Relaxed);
        }
    }

    /// Returns the number of regions that were opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// Returns the number of calls that returned `EAGAIN`.
    pub(super) fn retries(&self) -> u64 {
        let again = self.by_errno.get(num::index(AGAIN));
        again.map_or(0, |count| count.load(Relaxed))
    }

    /// Returns the counts of refused calls that are not 0, by errno.
    pub(super) fn refusals(&self) -> impl Iterator<Item = kfi_helper_refusals> + '_ {
        let counts = self.by_errno.iter().map(|count| count.load(Relaxed));
        let all = (0..).zip(counts);
        all.filter(|(err, count)| *count > 0 && *err != AGAIN)
            .map(|(err, count)| kfi_helper_refusals { err, count })
    }
}

/// Adds the counters of an object to a listing, in the order of its class in `kfabric_helpers.h`.
pub(super) fn show<const N: usize>(counters: [u64; N], about: &mut kfi_helper_object) {
    const { assert!(N <= COUNTERS) };
    about
        .counters
        .iter_mut()
        .zip(counters)
        .for_each(|(to, from)| *to = from);
}

/// The counters of the transfers that were posted on an endpoint or a shared receive context, by
/// `enum kfi_helper_ep_counter`.
pub(super) struct TransferCounters([Atomic<u64>; COUNTERS]);

/// The number of counters of an object in a listing.
pub(super) const COUNTERS: usize = num::index(c::kfi_helper_ep_counter_KFI_EP_COUNTERS);

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
        Self([const { Atomic::new(0) }; _])
    }

    /// Counts a transfer that was posted.
    #[inline(always)]
    pub(super) fn count(&self, op: &Op, bytes: u64) {
        let (transfers, of_bytes) = match op {
            Op::Send { .. } => (
                c::kfi_helper_ep_counter_KFI_COUNTER_SENDS,
                Some(c::kfi_helper_ep_counter_KFI_COUNTER_SEND_BYTES),
            ),
            Op::Receive => (c::kfi_helper_ep_counter_KFI_COUNTER_RECEIVES, None),
            Op::Read => (
                c::kfi_helper_ep_counter_KFI_COUNTER_READS,
                Some(c::kfi_helper_ep_counter_KFI_COUNTER_READ_BYTES),
            ),
            Op::Write { .. } => (
                c::kfi_helper_ep_counter_KFI_COUNTER_WRITES,
                Some(c::kfi_helper_ep_counter_KFI_COUNTER_WRITE_BYTES),
            ),
            Op::Atomic { .. } => (c::kfi_helper_ep_counter_KFI_COUNTER_ATOMICS, None),
        };
        self.add(transfers, 1);
        if let Some(of_bytes) = of_bytes {
            self.add(of_bytes, bytes);
        }
    }

    /// Counts a post that returned `EAGAIN` because a queue was full.
    pub(super) fn count_retry(&self) {
        self.add(c::kfi_helper_ep_counter_KFI_COUNTER_POST_RETRIES, 1);
    }

    #[inline(always)]
    fn add(&self, which: c::kfi_helper_ep_counter, value: u64) {
        if let Some(counter) = self.0.get(num::index(which)) {
            counter.add(value, Relaxed);
        }
    }

    /// Adds the counters to a listing.
    pub(super) fn describe(&self, about: &mut kfi_helper_object) {
        show(self.0.each_ref().map(|count| count.load(Relaxed)), about);
    }
}
