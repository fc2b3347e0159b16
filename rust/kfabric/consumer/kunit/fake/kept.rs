// SPDX-License-Identifier: GPL-2.0

//! What the provider for the unit tests keeps for longer than it should.

use crate::{
    region::extent::Extent,
    support::errno::Errno, //
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Full, //
    }, //
};

/// A place for the memory of a region, from which the test takes it.
///
/// # Invariants
///
/// Null, or came from a box that nobody else has.
pub(in crate::consumer::kunit) struct Kept(Atomic<*mut Extent>);

impl Kept {
    /// Nothing yet.
    pub(super) const fn new() -> Self {
        Self(Atomic::new(ptr::null_mut()))
    }

    /// Puts something in. May sleep.
    pub(super) fn put(&self, extent: Extent) -> Result<(), Errno> {
        let extent = KBox::new(extent, GFP_KERNEL)?;
        drop(self.exchange(KBox::into_raw(extent)));
        Ok(())
    }

    /// Takes out what there is.
    pub(in crate::consumer::kunit) fn take(&self) -> Option<KBox<Extent>> {
        self.exchange(ptr::null_mut())
    }

    fn exchange(&self, new: *mut Extent) -> Option<KBox<Extent>> {
        let old = self.0.xchg(new, Full);
        // SAFETY: By the invariant; whoever takes it out has it alone.
        (!old.is_null()).then(|| unsafe { KBox::from_raw(old) })
    }
}
