// SPDX-License-Identifier: GPL-2.0

//! Closing a region without waiting for anything.

use super::{
    in_steps::{
        InSteps,
        State, //
    },
    over::Over, //
};
use crate::resources::Resources;
use core::mem;

impl InSteps {
    /// As [`Region::release_now`](super::Region::release_now).
    pub(super) fn release_now(&mut self, resources: &Resources) -> bool {
        let State::Lent(lent) = &self.state else {
            return false;
        };
        if self.is_reserved() || !self.steps.is_of_pages() {
            return false;
        }
        let Some(fence) = lent.free_by(resources.fence()) else {
            return false;
        };
        let Some(room) = resources.pool().room() else {
            return false;
        };
        if let State::Lent(lent) = mem::replace(&mut self.state, State::Over(Over::Idle)) {
            match lent.into_free(fence) {
                Ok(mr) => room.put(mr),
                Err(lent) => self.state = State::Lent(lent),
            }
        }
        !matches!(self.state, State::Lent(_))
    }
}
