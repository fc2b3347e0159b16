// SPDX-License-Identifier: GPL-2.0

//! What is left of a region of which the device has nothing that could be taken from it.

use crate::refused;
use kfabric::{
    Errno,
    Refusal, //
};

/// Why the device has nothing that could be taken from it.
#[derive(Clone, Copy)]
pub(crate) enum Over {
    /// Not created, or closed.
    Idle,
    /// A step failed: no peer reaches it, for good.
    Failed,
    /// The device won't let go of some of it: its memory must never be freed.
    Stuck,
    /// The device or its endpoint went away, and the device had let go of it, or won't.
    Ended { stuck: bool },
}

impl Over {
    /// Returns the state of a region whose registration was refused like this.
    pub(super) fn after(refusal: &Refusal) -> Self {
        match refusal.errno() == Errno::ENOTRECOVERABLE {
            true => Self::Stuck,
            false => Self::Failed,
        }
    }

    /// It is to be closed yet.
    pub(super) fn is_open(self) -> bool {
        !matches!(self, Self::Idle | Self::Ended { .. })
    }

    /// Whether the device has let go of what is not there to be taken from it.
    pub(super) fn released(self) -> Result<(), Refusal> {
        match self {
            Self::Stuck | Self::Ended { stuck: true } => Err(refused::stuck()),
            _ => Ok(()),
        }
    }
}

/// What there is to be said of a region that peers don't reach any more.
pub(super) fn lost() -> Refusal {
    Refusal::new(Errno::EIO, c"the region is out of reach for good")
}
