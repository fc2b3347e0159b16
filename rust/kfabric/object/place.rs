// SPDX-License-Identifier: GPL-2.0

//! The place of an object among the children of the one that it was opened in.
//!
//! It is announced before there is an object ([`Coming`]), taken when all else of the object is made
//! ([`Place`]), and left when it is closed ([`Left`]). It counts from the first to the end of the last.

use super::{
    children::{
        Children,
        Share, //
    },
    obj::{
        Leave,
        Obj,
        Object, //
    }, //
};
use crate::support::{
    child_list::{
        ChildEntry,
        ChildKind,
        ChildList, //
        PartOf,
    }, //
    errno::Errno,
    refusal::Refusal,
};
use core::{
    mem,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// An object that others are opened in.
pub(crate) trait Parent: Object {
    /// What counts them, and what else keeps it from being closed.
    fn children(&self) -> &Children;

    /// The list of them.
    fn child_list(&self) -> &ChildList;

    /// Lets nothing be opened in it any more. Any context.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: something is open in it; says what.
    fn close_to_children(&self) -> Result<(), Refusal> {
        self.children().close().map_err(|errno| {
            let open = self.child_list().why_busy();
            Refusal::new(errno, open.unwrap_or(c"something of it is in use"))
        })
    }
}

/// An object that is opened in another.
pub(crate) trait Child: Object<Place = Place<Self>> {
    /// What it is opened in.
    type Parent: Parent;
    /// What it counts for.
    const SHARE: Share = Share::ONE;
    /// Ends what it has of a device that goes away, if that can be anything: it can still be closed
    /// then, perhaps at the same time, and does nothing else any more. Sleeps until that is done.
    const END: Option<fn(&Obj<Self>)> = None;
}

/// A place that is announced: counted, and waited for by who ends all that is open in the parent.
///
/// # Invariants
///
/// It is counted at `parent`, which is open therefore, and announced in that part of its list of children.
pub(crate) struct Coming<T: Child> {
    parent: NonNull<Obj<T::Parent>>,
    part: PartOf,
}

impl<T: Child> Coming<T> {
    /// Announces a new child. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the parent is being closed.
    pub(crate) fn new(parent: &Obj<T::Parent>) -> Result<Self, Errno> {
        parent.children().add()?;
        Ok(Self::counted(parent))
    }

    /// Announces one of those that there may be `most` of. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the parent is being closed.
    /// - `ENOSPC`: there are so many.
    pub(crate) fn new_below(parent: &Obj<T::Parent>, most: u32) -> Result<Self, Errno> {
        if parent.children().add_below(most)? {
            Ok(Self::counted(parent))
        } else {
            Err(Errno::ENOSPC)
        }
    }

    fn counted(parent: &Obj<T::Parent>) -> Self {
        // INVARIANT: The caller has just counted it, and it is announced here.
        Self {
            parent: NonNull::from(parent),
            part: parent.child_list().announce(),
        }
    }

    /// Takes the place, for an object whose other fields have been initialised. Any context.
    pub(super) fn take(self) -> impl PinInit<Place<T>> {
        let (parent, part) = (self.parent, self.part);
        let init = move |place: *mut Place<T>| {
            // The place is announced until the entry has joined, and counted until it is left.
            mem::forget(self);
            let new = Place {
                parent,
                entry: ChildEntry::new(Place::<T>::KIND, part),
            };
            // SAFETY: `place` is valid for writing, as an initialiser demands. The object is pinned,
            // and C's next, which closes it before it is freed: then it leaves. The parent is open.
            unsafe {
                place.write(new);
                parent.as_ref().child_list().join(&(*place).entry);
            }
            Ok(())
        };
        // SAFETY: It is initialised when the closure returns, which doesn't fail.
        unsafe { pin_init::pin_init_from_closure(init) }
    }
}

impl<T: Child> Drop for Coming<T> {
    fn drop(&mut self) {
        // SAFETY: Open by the invariant.
        let parent = unsafe { self.parent.as_ref() };
        parent.child_list().give_up(self.part);
        parent.children().remove(T::SHARE);
    }
}

/// The place of an open object.
///
/// # Invariants
///
/// Until it is [left](Leave::leave), it is counted at `parent`, which is open therefore, and `entry`
/// is in its list of children.
pub(crate) struct Place<T: Child> {
    parent: NonNull<Obj<T::Parent>>,
    entry: ChildEntry,
}

// SAFETY: Objects are used by any thread, and so can their counts be.
unsafe impl<T: Child> Send for Place<T> {}
// SAFETY: All that can be done with a shared reference is for any thread.
unsafe impl<T: Child> Sync for Place<T> {}

impl<T: Child> Place<T> {
    const KIND: &'static ChildKind = &ChildKind {
        open: T::CLASS.open(),
        end: match T::END {
            Some(_) => Some(Self::end),
            None => None,
        },
    };

    /// Ends the object that has this entry.
    ///
    /// # Safety
    ///
    /// The entry is that of an open object's place, which isn't left before this has returned.
    unsafe fn end(entry: NonNull<ChildEntry>) {
        // SAFETY: The entry is a field of a place, and that of an object. The object was initialised
        // before its place, and isn't freed before that is left.
        let object = unsafe {
            let place = kernel::container_of!(entry.as_ptr(), Self, entry);
            &*kernel::container_of!(place, Obj<T>, place)
        };
        if let Some(end) = T::END {
            end(object);
        }
    }

    /// Takes the place out of the list of children until the result is dropped or [leaves](Withdrawn::leave).
    /// Meanwhile nobody ends the object: a task that ends all of them waits. Returns `None` if one is ending
    /// this object. Any context.
    ///
    /// # Safety
    ///
    /// The place has not been left, and nobody else withdraws it.
    pub(super) unsafe fn try_withdraw(&self) -> Option<Withdrawn<'_, T>> {
        // SAFETY: The entry has joined the list of children, and not left it, by the invariant.
        let withdrawn = unsafe { self.parent().child_list().try_withdraw(&self.entry) };
        // INVARIANT: Just withdrawn.
        withdrawn.then(|| Withdrawn(self))
    }

    /// The object whose child it is the place of.
    fn parent(&self) -> &Obj<T::Parent> {
        // SAFETY: Open by the invariant.
        unsafe { self.parent.as_ref() }
    }
}

impl<T: Child> Leave for Place<T> {
    type Left = Left<T>;

    unsafe fn leave(&self) -> Left<T> {
        // SAFETY: By the invariant, it is in there.
        unsafe { self.parent().child_list().leave(&self.entry) };
        // INVARIANT: What was counted for `self` is for this one now.
        Left(self.parent)
    }
}

/// A place that is out of the list of children for a moment, which must be short.
///
/// # Invariants
///
/// The entry of the place is announced in the list of children, and not in it.
pub(super) struct Withdrawn<'a, T: Child>(&'a Place<T>);

impl<T: Child> Withdrawn<'_, T> {
    /// Leaves the place for good. Any context.
    pub(super) fn leave(self) -> Left<T> {
        let place = self.0;
        mem::forget(self);
        place.parent().child_list().give_up(place.entry.part());
        // INVARIANT: What was counted for the place is for this one now.
        Left(place.parent)
    }
}

impl<T: Child> Drop for Withdrawn<'_, T> {
    fn drop(&mut self) {
        // SAFETY: The entry is announced and not in the list of children by the invariant. It is pinned, and leaves
        // before the object is freed.
        unsafe { self.0.parent().child_list().join(&self.0.entry) };
    }
}

/// A place that was left, and still counts.
///
/// # Invariants
///
/// It is counted at the parent, which is open therefore.
pub(crate) struct Left<T: Child>(NonNull<Obj<T::Parent>>);

impl<T: Child> Left<T> {
    /// The object that the closed one was opened in.
    pub(crate) fn parent(&self) -> &Obj<T::Parent> {
        // SAFETY: Open by the invariant.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Child> Drop for Left<T> {
    fn drop(&mut self) {
        self.parent().children().remove(T::SHARE);
    }
}

impl<T: Child> Obj<T> {
    /// The object that it was opened in.
    pub(crate) fn parent(&self) -> &Obj<T::Parent> {
        self.place().parent()
    }
}
