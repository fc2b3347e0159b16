// SPDX-License-Identifier: GPL-2.0

//! What a pool does with those that come back where nobody may sleep.

use super::{
    inlet::Place,
    Pool, //
};
use core::iter;
use kernel::sync::Arc;
use rdma::mr::FastMr;

/// Room in a pool for one that comes back where nobody may sleep.
pub(crate) struct Room<'a> {
    place: Place<'a, FastMr>,
    pool: &'a Arc<Pool>,
}

impl Room<'_> {
    /// It comes back, and is given back in the end if nobody needs it. Any context.
    pub(crate) fn put(self, mr: FastMr) {
        if self.place.put(mr) {
            // Already queued is as good.
            let _ = self.pool.queue.enqueue(self.pool.clone());
        }
    }
}

impl Pool {
    /// Room for one that comes back where nobody may sleep, if there is some. Any context.
    pub(crate) fn room(self: &Arc<Self>) -> Option<Room<'_>> {
        let place = self.inlet.place()?;
        Some(Room { place, pool: self })
    }

    /// Has those that have come back join their lines, if there are any. May sleep.
    #[inline]
    pub(super) fn let_in(self: &Arc<Self>) {
        if !self.inlet.is_empty() {
            self.put_all(iter::from_fn(|| self.inlet.take()));
        }
    }
}
