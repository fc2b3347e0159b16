// SPDX-License-Identifier: GPL-2.0

//! What a pool does with those that come back where nobody may sleep.

use super::{
    inlet::Room,
    size_to_keep,
    Pool,
    State, //
};
use kernel::sync::Arc;
use rdma::mr::FastMr;

impl Pool {
    /// Room for one that comes back where nobody may sleep, if there is some. Any context.
    pub(crate) fn room(&self) -> Option<Room<'_>> {
        self.inlet.room()
    }

    /// Has those that have come back join their lines, if there are any. May sleep.
    #[inline]
    pub(super) fn let_all_in(self: &Arc<Self>) {
        while !self.inlet.is_empty() {
            let too_many = self.let_in(&mut self.state.lock());
            // Without the lock.
            drop(too_many);
        }
    }

    /// Has those that have come back join their lines; gives one back that isn't kept. Called with `state`
    /// locked. May sleep.
    pub(super) fn let_in(self: &Arc<Self>, state: &mut State) -> Option<FastMr> {
        let mut came = false;
        let mut too_many = None;
        while let Some(mr) = self.inlet.take() {
            came = true;
            let kept = match size_to_keep(&mr) {
                Some(size) => state.lines.put(size, mr),
                None => Err(mr),
            };
            if let Err(mr) = kept {
                too_many = Some(mr);
                break;
            }
        }
        if came && state.period.is_none() {
            self.begin_period(state);
        }
        too_many
    }
}
