// SPDX-License-Identifier: GPL-2.0

//! An object that something is bound to, and that stays open as long.

use super::{
    children::{
        Children,
        Share, //
    },
    obj::{
        Obj,
        Object, //
    }, //
};
use crate::support::errno::Errno;
use core::ptr::NonNull;

/// An object that counts who is bound to it, and can't be closed before they are gone.
pub(crate) trait CountsBound: Object {
    /// What counts them.
    fn users(&self) -> &Children;
}

/// An object, bound to something as long as this lives.
///
/// # Invariants
///
/// The object is open, since it counts this as a user.
pub(crate) struct Bound<T: CountsBound>(NonNull<Obj<T>>);

// SAFETY: It gives a shared reference to the object, which may be used by any thread.
unsafe impl<T: CountsBound> Send for Bound<T> where Obj<T>: Sync {}
// SAFETY: It gives a shared reference to the object, which may be used by several threads at once.
unsafe impl<T: CountsBound> Sync for Bound<T> where Obj<T>: Sync {}

impl<T: CountsBound> Bound<T> {
    /// Binds an object. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is being closed.
    pub(crate) fn new(object: &Obj<T>) -> Result<Self, Errno> {
        object.users().add()?;
        // INVARIANT: Just counted.
        Ok(Self(NonNull::from(object)))
    }

    /// The object.
    pub(crate) fn get(&self) -> &Obj<T> {
        // SAFETY: Open by the invariant.
        unsafe { self.0.as_ref() }
    }
}

impl<T: CountsBound> Drop for Bound<T> {
    fn drop(&mut self) {
        self.get().users().remove(Share::ONE);
    }
}
