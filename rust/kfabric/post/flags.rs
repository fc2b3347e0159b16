// SPDX-License-Identifier: GPL-2.0

//! The flags of one transfer.

use crate::support::{
    errno::Errno,
    num::widen_u32,
    refusal::Refusal, //
};
use kfi_bindings as c;

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

    /// Those of a request that goes to the peer.
    pub(crate) const TRANSMIT: u64 = Self::COMPLETION
        | Self::MORE
        | Self::INJECT
        | Self::FENCE
        | Self::REMOTE_CQ_DATA
        | Self::DELIVERY
        | Self::SENT;
    /// Those of a message.
    pub(crate) const SEND: u64 = Self::TRANSMIT | Self::INVALIDATE;
    /// Those of a request that takes something from the peer: there is nothing to inject, and nobody who
    /// would get data.
    pub(crate) const READ: u64 = Self::TRANSMIT & !(Self::INJECT | Self::REMOTE_CQ_DATA);
    /// Those of an atomic operation: there is nobody who would get data. Its operands are always the
    /// caller's again when posting returns.
    pub(crate) const ATOMIC: u64 = Self::TRANSMIT & !Self::REMOTE_CQ_DATA;
    /// Those of a request that waits for the peer.
    pub(crate) const RECEIVE: u64 = Self::COMPLETION | Self::MORE;

    const ALL: u64 = Self::SEND | Self::RECEIVE;

    /// Takes flags of a call, of which only those in `known` make sense.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: there are others, or such that exclude each other.
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

    /// Takes the flags of an endpoint, of which those count that are in `known`.
    pub(crate) const fn default(flags: u64, known: u64) -> Self {
        // INVARIANT: Masked.
        Self(flags & known & Self::ALL)
    }

    /// For a call without flags, whose bytes are the caller's again when it returns.
    pub(crate) const fn injected() -> Self {
        // INVARIANT: One of them.
        Self(Self::INJECT)
    }

    /// The same, of a transfer with nothing to inject.
    pub(crate) const fn without_inject(self) -> Self {
        // INVARIANT: One less.
        Self(self.0 & !Self::INJECT)
    }

    /// The same, of a transfer behind one that waits for those before.
    pub(crate) const fn without_fence(self) -> Self {
        // INVARIANT: One less.
        Self(self.0 & !Self::FENCE)
    }

    /// Does the consumer want an entry in its completion queue, where it wants some only?
    pub(crate) const fn completes(self) -> bool {
        self.0 & Self::COMPLETION != 0
    }

    /// Is there more to come at once, so that the device needn't be told yet?
    pub const fn more(self) -> bool {
        self.0 & Self::MORE != 0
    }

    /// Are the bytes the caller's again when posting returns?
    pub(crate) const fn injects(self) -> bool {
        self.0 & Self::INJECT != 0
    }

    /// Must all reads that were posted before have ended first?
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

#[kernel::macros::kunit_tests(kfabric_post_flags)]
mod tests {
    use super::*;

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
