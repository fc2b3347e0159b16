// SPDX-License-Identifier: GPL-2.0

//! The place of an object among the children of the one that it was opened in.

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
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// An object that others are opened in.
pub(crate) trait Parent: Object {
    /// What counts them.
    fn children(&self) -> &Children;
}

/// An object that is opened in another.
pub(crate) trait Child: Object<Place = Place<Self>> {
    /// What it is opened in.
    type Parent: Parent;
    /// What it counts for.
    const SHARE: Share = Share::ONE;
}

/// The place of an object among the children of another: it is counted there until this is dropped.
///
/// # Invariants
///
/// Unless the place was [taken](Self::take), it is counted at `parent`, which is open therefore.
pub(crate) struct Place<T: Child> {
    parent: NonNull<Obj<T::Parent>>,
    taken: Atomic<bool>,
}

// SAFETY: Objects are used by any thread, and so can their counts be.
unsafe impl<T: Child> Send for Place<T> {}
// SAFETY: As above, and `taken` is atomic.
unsafe impl<T: Child> Sync for Place<T> {}

impl<T: Child> Place<T> {
    /// A place for a new child. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the parent is being closed.
    pub(crate) fn new(parent: &Obj<T::Parent>) -> Result<Self, Errno> {
        parent.children().add()?;
        Ok(Self::counted(parent))
    }

    /// A place for one of those that there may be `most` of. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the parent is being closed.
    /// - `ENOSPC` if there are so many.
    pub(crate) fn new_below(parent: &Obj<T::Parent>, most: u32) -> Result<Self, Errno> {
        if parent.children().add_below(most)? {
            Ok(Self::counted(parent))
        } else {
            Err(Errno::ENOSPC)
        }
    }

    fn counted(parent: &Obj<T::Parent>) -> Self {
        // INVARIANT: The caller has just counted it.
        Self {
            parent: NonNull::from(parent),
            taken: Atomic::new(false),
        }
    }

    /// Takes the place from an object that may be dropped later than it is closed. Any context.
    ///
    /// # Safety
    ///
    /// Called once; the object's [`parent`](Obj::parent) is not used after what this gives was
    /// dropped.
    pub(crate) unsafe fn take(&self) -> Self {
        self.taken.store(true, Relaxed);
        // INVARIANT: What was counted for `self` is for this one now.
        Self {
            parent: self.parent,
            taken: Atomic::new(false),
        }
    }

    /// The object whose child it is the place of.
    pub(crate) fn parent(&self) -> &Obj<T::Parent> {
        // SAFETY: By the invariant, or that of whom the place was taken by.
        unsafe { self.parent.as_ref() }
    }
}

impl<T: Child> Drop for Place<T> {
    fn drop(&mut self) {
        if !self.taken.load(Relaxed) {
            self.parent().children().remove(T::SHARE);
        }
    }
}

impl<T: Child> Obj<T> {
    /// The object that it was opened in.
    pub(crate) fn parent(&self) -> &Obj<T::Parent> {
        self.place().parent()
    }
}
