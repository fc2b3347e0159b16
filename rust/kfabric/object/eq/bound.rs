// SPDX-License-Identifier: GPL-2.0

//! An event queue that something reports to.

use super::{
    EqBody,
    EqObject, //
};
use crate::{
    object::binding::Bindable,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;

/// An event queue, bound to something as long as this lives.
///
/// # Invariants
///
/// The queue is open, since it counts this as a user.
pub(crate) struct BoundEq(NonNull<EqObject>);

// SAFETY: An event queue may be used by any thread.
unsafe impl Send for BoundEq {}
// SAFETY: An event queue may be used by several threads at once.
unsafe impl Sync for BoundEq {}

impl BoundEq {
    /// Binds a queue; `EINVAL` if it is being closed. Any context.
    pub(crate) fn new(eq: &EqObject) -> Result<Self, Errno> {
        eq.bind()?;
        // INVARIANT: Just counted.
        Ok(Self(NonNull::from(eq)))
    }

    /// The queue.
    pub(crate) fn get(&self) -> &EqObject {
        // SAFETY: Open by the invariant.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for BoundEq {
    fn drop(&mut self) {
        self.get().unbind();
    }
}

impl Bindable for EqBody {
    type Bound = BoundEq;

    fn bound(object: &EqObject) -> Result<BoundEq, Refusal> {
        Ok(BoundEq::new(object)?)
    }
}
