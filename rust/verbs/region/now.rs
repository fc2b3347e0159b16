// SPDX-License-Identifier: GPL-2.0

//! Closing a region without waiting for anything.

use super::{
    steps::Steps,
    Region,
    State, //
};
use crate::resources::Resources;
use core::mem;
use kfabric::RareBox;

impl Region {
    /// Takes the region from the device, if its peer has done that already, and it is all that it takes; returns
    /// whether it was, and is idle then. Any context.
    pub(crate) fn release_now(&mut self, resources: &Resources) -> bool {
        let State::Lent(lent) = &self.state else {
            return false;
        };
        let kept = |steps: &RareBox<Steps>| !steps.is_reserved() && steps.is_of_pages();
        if !self.steps.as_ref().is_some_and(kept) {
            return false;
        }
        let Some(fence) = lent.free_by(resources.fence()) else {
            return false;
        };
        let Some(room) = resources.pool().room() else {
            return false;
        };
        if let State::Lent(lent) = mem::replace(&mut self.state, State::Idle) {
            match lent.into_free(fence) {
                Ok(mr) => room.put(mr),
                Err(lent) => self.state = State::Lent(lent),
            }
        }
        !matches!(self.state, State::Lent(_))
    }
}
