// SPDX-License-Identifier: GPL-2.0

//! The states of a region, which are the core's alone: providers can't get them wrong.
//!
//! ```text
//!               begin()            end(true)
//!   Disabled ------------> Pending ----------> Enabled
//!    |    ^ ^                 |
//!    +----+ +----end_again()--+--------------> Failed
//!   is bound                       end(false)
//! ```
//!
//! A region that is enabled for an endpoint is `Fallen` when that endpoint has gone down.
//!
//! A region is closed in any state but `Pending`, which ends by itself: it is `Closing` then, and last
//! `Closed`.

use crate::object::prelude::*;

/// Where a region is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MrState {
    /// No peer can reach it. It can be bound.
    Disabled,
    /// It is being enabled.
    Pending,
    /// Peers can reach it.
    Enabled,
    /// It could not be enabled, and is only there to be closed.
    Failed,
    /// Its endpoint has gone down: no peer can reach it any more, and it is only there to be closed.
    Fallen,
    /// It is being closed.
    Closing,
    /// It is closed.
    Closed,
}

impl MrState {
    /// Begins enabling. `bound` says whether the region is bound to everything that it must be
    /// bound to. The caller must end it.
    pub(super) fn begin(&mut self, bound: bool) -> Result<(), Refusal> {
        self.check(Self::Disabled, c"not disabled any more")?;
        if !bound {
            return Err(Refusal::new(Errno::EINVAL, c"not bound yet"));
        }
        *self = Self::Pending;
        Ok(())
    }

    /// Ends enabling, well or not.
    pub(super) fn end(&mut self, well: bool) {
        *self = if well { Self::Enabled } else { Self::Failed };
    }

    /// Ends enabling, with the state as it was.
    pub(super) fn end_again(&mut self) {
        *self = Self::Disabled;
    }

    /// Notes that peers can't reach the enabled region any more.
    pub(super) fn fall(&mut self) {
        *self = Self::Fallen;
    }

    /// Begins closing. The region must not be pending.
    pub(super) fn begin_close(&mut self) {
        *self = Self::Closing;
    }

    /// Ends closing.
    pub(super) fn end_close(&mut self) {
        *self = Self::Closed;
    }

    /// Checks that the region may still be bound; `EOPBADSTATE` if not.
    pub(super) fn check_disabled(self) -> Result<(), Refusal> {
        self.check(Self::Disabled, c"regions are bound before they are enabled")
    }

    /// Checks that peers can reach the region; `EOPBADSTATE` if not.
    pub(super) fn check_enabled(self) -> Result<(), Refusal> {
        self.check(
            Self::Enabled,
            match self {
                Self::Fallen => c"the region's endpoint has gone down",
                _ => c"the region is not enabled",
            },
        )
    }

    fn check(self, state: Self, why: &'static CStr) -> Result<(), Refusal> {
        if self == state {
            Ok(())
        } else {
            Err(Refusal::new(Errno::EOPBADSTATE, why))
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_mr_state)]
mod tests {
    use super::*;

    fn errno(result: Result<(), Refusal>) -> Option<Errno> {
        result.err().map(|e| e.errno())
    }

    #[test]
    fn enabled_once() {
        let mut state = MrState::Disabled;
        assert_eq!(errno(state.check_enabled()), Some(Errno::EOPBADSTATE));
        assert_eq!(errno(state.begin(true)), None);
        assert_eq!(state, MrState::Pending);
        assert_eq!(errno(state.begin(true)), Some(Errno::EOPBADSTATE));
        state.end(true);
        assert_eq!(errno(state.check_enabled()), None);
        assert_eq!(errno(state.begin(true)), Some(Errno::EOPBADSTATE));
    }

    #[test]
    fn bound_before_enabled() {
        let mut state = MrState::Disabled;
        assert_eq!(errno(state.check_disabled()), None);
        assert_eq!(errno(state.begin(false)), Some(Errno::EINVAL));
        assert_eq!(errno(state.begin(true)), None);
        assert_eq!(errno(state.check_disabled()), Some(Errno::EOPBADSTATE));
        // A wrong state is reported first.
        assert_eq!(errno(state.begin(false)), Some(Errno::EOPBADSTATE));
        state.end(true);
        assert_eq!(errno(state.check_disabled()), Some(Errno::EOPBADSTATE));
    }

    #[test]
    fn tried_again() {
        let mut state = MrState::Disabled;
        assert_eq!(errno(state.begin(true)), None);
        state.end_again();
        assert_eq!(errno(state.begin(true)), None);
    }

    #[test]
    fn failed_or_fallen_is_only_closed() {
        for end in [|state: &mut MrState| state.end(false), MrState::fall] {
            let mut state = MrState::Pending;
            end(&mut state);
            assert_eq!(errno(state.begin(true)), Some(Errno::EOPBADSTATE));
            assert_eq!(errno(state.check_enabled()), Some(Errno::EOPBADSTATE));
            assert_eq!(errno(state.check_disabled()), Some(Errno::EOPBADSTATE));
            state.begin_close();
            assert_eq!(state, MrState::Closing);
            state.end_close();
            assert_eq!(state, MrState::Closed);
        }
    }
}
