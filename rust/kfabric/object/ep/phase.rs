// SPDX-License-Identifier: GPL-2.0

//! Where an endpoint is in its life.

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full, //
};

/// Where an endpoint is in its life. It only goes on, but for [`Phase::Connecting`] if that is refused
/// at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Things may be bound to it.
    New,
    /// Receives may be posted.
    Enabled,
    /// It waits for its peer.
    Connecting,
    /// There is a connection.
    Connected,
    /// There was one, or won't be one.
    Down,
}

impl Phase {
    const ALL: [Self; 5] = [
        Self::New,
        Self::Enabled,
        Self::Connecting,
        Self::Connected,
        Self::Down,
    ];

    /// Why something can't be done in this phase.
    pub(super) const fn refusal(self) -> Refusal {
        match self {
            Self::New => Refusal::new(Errno::EOPBADSTATE, c"the endpoint is not enabled"),
            Self::Enabled => Refusal::new(Errno::ENOTCONN, c"the endpoint is not connected"),
            Self::Connecting => Refusal::new(Errno::ENOTCONN, c"the endpoint is being connected"),
            Self::Connected => Refusal::new(Errno::EISCONN, c"the endpoint is connected"),
            Self::Down => Refusal::new(Errno::ENOTCONN, c"the connection is gone"),
        }
    }
}

/// A phase that several threads change and look at. Any context.
pub(crate) struct AtomicPhase(Atomic<usize>);

impl AtomicPhase {
    /// A new endpoint's.
    pub(super) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    fn of(index: usize) -> Phase {
        Phase::ALL.get(index).copied().unwrap_or(Phase::Down)
    }

    fn index(phase: Phase) -> usize {
        Phase::ALL
            .iter()
            .position(|&other| other == phase)
            .unwrap_or(0)
    }

    /// The phase.
    pub(crate) fn get(&self) -> Phase {
        Self::of(self.0.load(Acquire))
    }

    /// Goes to another phase from one that `may` be left for it.
    ///
    /// # Errors
    ///
    /// The phase, if that may not be.
    pub(super) fn change(&self, to: Phase, may: impl Fn(Phase) -> bool) -> Result<Phase, Phase> {
        let mut index = self.0.load(Acquire);
        loop {
            let from = Self::of(index);
            if !may(from) {
                return Err(from);
            }
            match self.0.cmpxchg(index, Self::index(to), Full) {
                Ok(_) => return Ok(from),
                Err(now) => index = now,
            }
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_phase)]
mod tests {
    use super::*;

    #[test]
    fn goes_where_it_may() {
        let phase = AtomicPhase::new();
        assert_eq!(phase.get(), Phase::New);
        let go = |to, from| phase.change(to, |phase| phase == from);
        assert_eq!(go(Phase::Connecting, Phase::Enabled), Err(Phase::New));
        assert_eq!(go(Phase::Enabled, Phase::New), Ok(Phase::New));
        assert_eq!(go(Phase::Connecting, Phase::Enabled), Ok(Phase::Enabled));
        assert_eq!(phase.get(), Phase::Connecting);
        assert_eq!(phase.change(Phase::Down, |_| true), Ok(Phase::Connecting));
        assert_eq!(phase.get(), Phase::Down);
    }
}
