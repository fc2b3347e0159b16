// SPDX-License-Identifier: GPL-2.0

//! Putting an extent together.

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use kernel::prelude::*;

/// Where a run of memory begins: its offset in the region, and its physical address.
#[derive(Clone, Copy)]
pub(super) struct ExtentStart {
    pub(super) at: u64,
    pub(super) phys: u64,
}

/// An extent that is being put together.
#[derive(Default)]
pub(super) struct Building {
    first: Option<ExtentStart>,
    rest: KVVec<ExtentStart>,
    len: u64,
    /// Physical address behind the last byte.
    end: u64,
}

impl Building {
    /// Adds memory, which the caller has checked.
    pub(super) fn add(&mut self, phys: u64, len: u64) -> Result<(), Refusal> {
        let run = ExtentStart { at: self.len, phys };
        if self.first.is_none() {
            self.first = Some(run);
        } else if self.end != phys {
            self.rest.push(run, GFP_KERNEL)?;
        }
        self.end = phys + len;
        self.len += len;
        Ok(())
    }

    /// The first run, those that follow, and the length of all, if there is anything. Any context.
    pub(super) fn done(self) -> Result<(ExtentStart, KVVec<ExtentStart>, u64), Refusal> {
        Ok((self.first.ok_or(Errno::EINVAL)?, self.rest, self.len))
    }
}
