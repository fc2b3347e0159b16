// SPDX-License-Identifier: GPL-2.0

//! A region that has no device region any more.

use crate::prelude::*;

/// Why a region has no device region.
#[derive(Clone, Copy)]
pub(crate) enum Closed {
    /// Not created, or closed.
    Idle,
    /// A step failed: no peer reaches it, for good.
    Failed,
    /// The device won't let go of some of it: its memory must never be freed.
    Stuck,
    /// The device or its endpoint went away, and the device had let go of it, or won't.
    Ended { stuck: bool },
}

impl Closed {
    /// Returns the state of a region whose registration was refused like this.
    pub(super) fn after(refusal: &Refusal) -> Self {
        match refusal.errno() == Errno::ENOTRECOVERABLE {
            true => Self::Stuck,
            false => Self::Failed,
        }
    }

    /// Checks whether it has to be closed yet.
    pub(super) fn is_open(self) -> bool {
        !matches!(self, Self::Idle | Self::Ended { .. })
    }

    /// Returns whether the device has let go of the memory.
    ///
    /// # Errors
    ///
    /// - `EIO`: it has not.
    pub(super) fn released(self) -> Result<(), Refusal> {
        match self {
            Self::Stuck | Self::Ended { stuck: true } => Err(refused::stuck()),
            _ => Ok(()),
        }
    }
}

/// Returns the refusal for a region that peers don't reach any more.
pub(super) fn lost() -> Refusal {
    Refusal::new(Errno::EIO, c"the region is out of reach for good")
}
