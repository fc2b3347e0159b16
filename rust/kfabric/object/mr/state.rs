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
//! What is enabled for an endpoint is `Fallen` when that has gone down.
//!
//! A region is closed in any state but `Pending`, which ends by itself: it is `Closing` then, and last
//! `Closed`.

mod kunit;

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use kernel::str::CStr;

/// Where a region is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
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

impl State {
    /// Enabling begins, of a region that is bound to all that it has to be; whoever began it ends it.
    pub(super) fn begin(&mut self, bound: bool) -> Result<(), Refusal> {
        self.check(Self::Disabled, c"not disabled any more")?;
        if !bound {
            return Err(Refusal::new(Errno::EINVAL, c"not bound yet"));
        }
        *self = Self::Pending;
        Ok(())
    }

    /// Enabling has ended, well or not.
    pub(super) fn end(&mut self, well: bool) {
        *self = if well { Self::Enabled } else { Self::Failed };
    }

    /// It is as it was before enabling began.
    pub(super) fn end_again(&mut self) {
        *self = Self::Disabled;
    }

    /// What was enabled is out of reach.
    pub(super) fn fall(&mut self) {
        *self = Self::Fallen;
    }

    /// Closing begins, of what isn't pending.
    pub(super) fn begin_close(&mut self) {
        *self = Self::Closing;
    }

    /// Closing has ended.
    pub(super) fn end_close(&mut self) {
        *self = Self::Closed;
    }

    /// `EOPBADSTATE` unless it may still be bound.
    pub(super) fn check_disabled(self) -> Result<(), Refusal> {
        self.check(Self::Disabled, c"regions are bound before they are enabled")
    }

    /// `EOPBADSTATE` unless peers can reach it.
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
