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

    /// Has those that have come back join their lines; gives one back that isn't kept. Called with `state`
    /// locked. May sleep.
    pub(super) fn let_in(self: &Arc<Self>, state: &mut State) -> Option<FastMr> {
        let mut came = false;
        while let Some(mr) = self.inlet.take() {
            let kept = match size_to_keep(&mr) {
                Some(size) => state.lines.put(size, mr),
                None => Err(mr),
            };
            if let Err(mr) = kept {
                return Some(mr);
            }
            came = true;
        }
        if came && state.period.is_none() {
            self.begin_period(state);
        }
        None
    }
}
