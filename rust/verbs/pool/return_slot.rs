// SPDX-License-Identifier: GPL-2.0

//! Taking in regions that come back in atomic context.

use super::{
    return_list::Place,
    Pool, //
};
use core::iter;
use kernel::sync::Arc;
use rdma::mr::FastMr;

/// Room in a pool for one that comes back where nobody may sleep.
pub(crate) struct ReturnSlot<'a> {
    place: Place<'a, FastMr>,
    pool: &'a Arc<Pool>,
}

impl ReturnSlot<'_> {
    /// Puts a region in. If nobody needs it, it is given back in the end. Any context.
    pub(crate) fn put(self, mr: FastMr) {
        if self.place.put(mr) {
            // Already queued is as good.
            let _ = self.pool.queue.enqueue(self.pool.clone());
        }
    }
}

impl Pool {
    /// Reserves space for a region that comes back in atomic context, if there is some. Any
    /// context.
    pub(crate) fn room(self: &Arc<Self>) -> Option<ReturnSlot<'_>> {
        let place = self.inlet.place()?;
        Some(ReturnSlot { place, pool: self })
    }

    /// Has those that have come back join their lines, if there are any. May sleep.
    #[inline]
    pub(super) fn let_in(self: &Arc<Self>) {
        if !self.inlet.is_empty() {
            self.put_all(iter::from_fn(|| self.inlet.take()));
        }
    }
}
