// SPDX-License-Identifier: GPL-2.0

//! What a pool does with those that come back where nobody may sleep.

use super::{
    inlet::Room,
    Pool, //
};
use core::iter;
use kernel::sync::Arc;

impl Pool {
    /// Room for one that comes back where nobody may sleep, if there is some. Any context.
    pub(crate) fn room(&self) -> Option<Room<'_>> {
        self.inlet.room()
    }

    /// Has those that have come back join their lines, if there are any. May sleep.
    #[inline]
    pub(super) fn let_in(self: &Arc<Self>) {
        if !self.inlet.is_empty() {
            self.put_all(iter::from_fn(|| self.inlet.take()));
        }
    }
}
