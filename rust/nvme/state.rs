// SPDX-License-Identifier: GPL-2.0

//! The state of a tag.
//!
//! Two events end a request: its capsule comes back, and its response is there. The later one gets
//! the request. A response to a request that is not under way changes nothing.

use crate::prelude::*;

/// No request has the tag, or nvme-core has it.
const IDLE: u32 = 0;
/// The transport has the request.
const HELD: u32 = 1;
/// The request is being sent, or was sent.
const UNDERWAY: u32 = 2;
/// The capsule is back.
const SENT: u32 = 4;
/// A response is being noted.
const CLAIMED: u32 = 8;
/// The response is there.
const ANSWERED: u32 = 16;

/// The state of a tag.
pub(crate) struct PduState(Atomic<u32>);

impl PduState {
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(IDLE))
    }

    /// Gives an idle tag to the transport.
    pub(crate) fn hold(&self) {
        self.0.store(HELD, Release);
    }

    /// Marks a held tag as being sent.
    pub(crate) fn sending(&self) {
        self.0.store(UNDERWAY, Release);
    }

    /// Takes a tag back whose capsule was not accepted. The response that an ill-behaved target may
    /// have sent is dropped. Returns true if there was one.
    pub(crate) fn refused(&self) -> bool {
        while let Err(seen) = self.0.cmpxchg(UNDERWAY, HELD, Full) {
            // Another task notes a response, which takes a few instructions.
            if seen & ANSWERED != 0 {
                // The failed exchange orders nothing. The caller writes the answer, which that task has
                // written before it set `ANSWERED`.
                self.0.xchg(HELD, Full);
                return true;
            }
            core::hint::spin_loop();
        }
        false
    }

    /// Notes that the capsule is back. Returns true if the caller gets the request.
    pub(crate) fn sent(&self) -> bool {
        self.both(SENT, ANSWERED)
    }

    /// Begins to note a response. Returns false if the tag is not under way or has a response.
    pub(crate) fn claim(&self) -> bool {
        let mut seen = self.0.load(Relaxed);
        while seen & UNDERWAY != 0 && seen & CLAIMED == 0 {
            match self.0.cmpxchg(seen, seen | CLAIMED, Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Ends noting a response. Returns true if the caller gets the request.
    pub(crate) fn answered(&self) -> bool {
        self.both(ANSWERED, SENT)
    }

    /// Adds a bit that is not set, and holds the tag if the other one is set.
    fn both(&self, bit: u32, other: u32) -> bool {
        let last = self.0.fetch_add(bit, Full) & other != 0;
        if last {
            self.hold();
        }
        last
    }

    /// Ends the request, whose tag becomes idle.
    pub(crate) fn end(&self) {
        self.0.store(IDLE, Release);
    }

    /// Checks whether the tag has a request that was not ended.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Acquire) != IDLE
    }
}

#[kernel::macros::kunit_tests(nvme_state)]
mod tests {
    use super::*;

    #[test]
    fn later_event_gets_request() {
        for response_first in [false, true] {
            let state = PduState::new();
            state.hold();
            assert!(!state.claim());
            state.sending();
            if response_first {
                assert!(state.claim());
                assert!(!state.answered());
                assert!(!state.claim());
                assert!(state.sent());
            } else {
                assert!(!state.sent());
                assert!(state.claim());
                assert!(state.answered());
            }
            assert!(state.is_busy());
            assert!(!state.claim());
            state.end();
            assert!(!state.is_busy());
            assert!(!state.claim());
        }
    }

    #[test]
    fn refused_tag_drops_response() {
        let state = PduState::new();
        for answered in [false, true] {
            state.hold();
            state.sending();
            if answered {
                assert!(state.claim());
                assert!(!state.answered());
            }
            assert_eq!(state.refused(), answered);
            assert!(state.is_busy());
            assert!(!state.claim());
            state.end();
        }
    }
}
