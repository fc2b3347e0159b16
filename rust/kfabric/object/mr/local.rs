// SPDX-License-Identifier: GPL-2.0

//! Letting transfers find a region by its descriptor.

use super::MrObject;
use crate::provider::Keys;

/// The values that a transfer finds of an enabled region, besides those that it was registered
/// with.
pub(super) struct Found {
    desc: usize,
    base: u64,
    whole: bool,
}

impl Found {
    /// Returns the values of a region with these keys. Any context.
    pub(super) fn new(keys: &Keys) -> Self {
        Self {
            desc: keys.desc,
            base: keys.base,
            whole: keys.whole,
        }
    }
}

impl MrObject {
    /// Lets the region, which is enabled, be found by its descriptor, if it has one. Called once. Any context.
    pub(super) fn reveal(&self, Found { desc, base, whole }: Found) {
        let descs = self.parent().descs();
        // SAFETY: Enabled once, so not in the table yet; the object doesn't move, and is hidden
        // before it is dropped.
        unsafe { descs.insert(&self.local, desc, base, whole) };
    }

    /// Lets it not be found any more. Called when it is being closed. Any context.
    pub(super) fn hide(&self) {
        // SAFETY: If it is in a table, it is that of its domain; enabling it has ended.
        unsafe { self.parent().descs().remove(&self.local) };
    }
}
