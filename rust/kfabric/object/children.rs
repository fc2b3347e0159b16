// SPDX-License-Identifier: GPL-2.0

//! The open children of an object: their number, and the entry of each in the list of its parent.
//!
//! An entry has three stages, and the parent counts it in all of them:
//!
//! - [`Coming`]: announced, before the object exists.
//! - [`Place`]: in the list, while the object is open.
//! - [`Left`]: removed from the list, when the object is closed.

use super::{
    closing,
    counters::DomainCounters,
    obj::{
        Leave,
        Obj,
        Object, //
    }, //
};
use crate::{
    prelude::*,
    support::child_list::{
        ChildEntry,
        ChildKind,
        ChildList,
        PartOf, //
    }, //
};
use kernel::sync::atomic::Full;
use kfi_bindings::kfi_helper_object;

/// The number of open children and other users of an object.
///
/// # Invariants
///
/// The number is the sum of the shares of all open children, or [`CLOSED`](Self::CLOSED) from a
/// successful [`close`](Self::close) on.
pub(crate) struct Children(Atomic<u64>);

/// The share of a child in the count. The lower half counts all children, the upper half children with a limit.
#[derive(Clone, Copy)]
pub(crate) struct Share(u64);

impl Share {
    /// The share of a child without a limit.
    pub(crate) const ONE: Self = Self(1);
    /// The share of a child with a limit.
    pub(crate) const LIMITED: Self = Self(1 << 32 | 1);
}

impl Children {
    const CLOSED: u64 = u64::MAX;

    /// The maximum of each half, so that the lower half never overflows.
    const MAX: u64 = i32::MAX as u64;

    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    fn add_if(&self, share: Share, may: impl Fn(u64) -> bool) -> Result<bool, Errno> {
        let mut open = self.0.load(Relaxed);
        loop {
            if open == Self::CLOSED {
                return Err(Errno::EINVAL);
            }
            if !may(open) {
                return Ok(false);
            }
            match self.0.cmpxchg(open, open + share.0, Full) {
                Ok(_) => return Ok(true),
                Err(now) => open = now,
            }
        }
    }

    /// Adds a child with a limit. Returns false if there are `most`. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is closed.
    pub(crate) fn add_below(&self, most: u32) -> Result<bool, Errno> {
        let most = u64::from(most).min(Self::MAX);
        self.add_if(Share::LIMITED, |open| open >> 32 < most)
    }

    /// Adds a child. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is closed.
    /// - `ENOSPC`: there are too many children.
    pub(crate) fn add(&self) -> Result<(), Errno> {
        if self.add_if(Share::ONE, |open| open % (1 << 32) < Self::MAX)? {
            Ok(())
        } else {
            Err(Errno::ENOSPC)
        }
    }

    /// Returns the number of children with a limit. Any context.
    pub(crate) fn limited(&self) -> u64 {
        match self.0.load(Relaxed) {
            Self::CLOSED => 0,
            open => open >> 32,
        }
    }

    /// Removes a child with this share. Any context.
    pub(crate) fn remove(&self, share: Share) {
        self.0.fetch_sub(share.0, Full);
    }

    /// Prevents the addition of children. Any context.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: there are children, or the object is closed.
    pub(crate) fn close(&self) -> Result<(), Errno> {
        match self.0.cmpxchg(0, Self::CLOSED, Full) {
            Ok(_) => Ok(()),
            Err(_) => Err(Errno::EBUSY),
        }
    }

    /// Reverts a [`close`](Self::close), because the object stays open. Any context.
    pub(crate) fn reopen(&self) {
        self.0.store(0, kernel::sync::atomic::Release);
    }

    /// Adds a user until the result is dropped. Any context.
    ///
    /// # Errors
    ///
    /// The errors of [`add`](Self::add).
    pub(crate) fn count(&self) -> Result<Counted<'_>, Errno> {
        self.add()?;
        Ok(Counted(self))
    }
}

/// A counted user. Dropping it removes the user.
pub(crate) struct Counted<'a>(&'a Children);

impl Counted<'_> {
    /// Keeps the user counted, until [`Children::remove`] with [`Share::ONE`].
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.remove(Share::ONE);
    }
}

/// An object with children.
pub(crate) trait Parent: Object {
    /// Returns the count of children and other users.
    fn children(&self) -> &Children;

    /// Returns the list of children.
    fn child_list(&self) -> &ChildList;

    /// Closes the object to new children. Any context.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: a child is open. The reason names its class.
    fn close_to_children(&self) -> Result<(), Refusal> {
        self.children().close().map_err(|errno| {
            let open = self.child_list().why_busy();
            Refusal::new(errno, open.unwrap_or(c"something of it is in use"))
        })
    }
}

/// An object with a parent.
pub(crate) trait Child: Object<Place = Place<Self>> {
    /// The parent.
    type Parent: Parent;
    /// The share in the count of the parent.
    const SHARE: Share = Share::ONE;
    /// Releases the device of the object, because the device is removed. After that, the consumer can only close
    /// the object, perhaps at the same time. Sleeps until the device is released.
    const END: Option<fn(&Obj<Self>)> = None;
}

/// An announced entry. A task that ends all children of the parent waits for it.
///
/// # Invariants
///
/// - `parent` is open, because it counts this entry.
/// - The entry is announced in `part` of the parent's list of children.
pub(crate) struct Coming<T: Child> {
    parent: NonNull<Obj<T::Parent>>,
    part: PartOf,
}

impl<T: Child> Coming<T> {
    /// Announces a child. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: another task closes the parent.
    pub(crate) fn new(parent: &Obj<T::Parent>) -> Result<Self, Errno> {
        parent.children().add()?;
        Ok(Self::counted(parent))
    }

    /// Announces a child. The parent can have `most` children with a limit. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: another task closes the parent.
    /// - `ENOSPC`: the parent has `most`.
    pub(crate) fn new_below(parent: &Obj<T::Parent>, most: u32) -> Result<Self, Errno> {
        if parent.children().add_below(most)? {
            Ok(Self::counted(parent))
        } else {
            Err(Errno::ENOSPC)
        }
    }

    fn counted(parent: &Obj<T::Parent>) -> Self {
        // INVARIANT: The caller has counted the entry, and `announce` announces it.
        Self {
            parent: NonNull::from(parent),
            part: parent.child_list().announce(),
        }
    }

    /// Adds the entry to the list of children. The other fields of the object are initialized. Any context.
    pub(super) fn take(self) -> impl PinInit<Place<T>> {
        let (parent, part) = (self.parent, self.part);
        let init = move |place: *mut Place<T>| {
            // The entry stays announced until it joins, and counted until it leaves.
            mem::forget(self);
            let new = Place {
                parent,
                entry: ChildEntry::new(Place::<T>::KIND, part),
            };
            // SAFETY: `place` is valid for writes, as `pin_init` requires. The object is pinned, and its entry leaves
            // the list before the object is freed. The parent is open, because it counts the entry.
            unsafe {
                place.write(new);
                parent.as_ref().child_list().join(&(*place).entry);
            }
            Ok(())
        };
        // SAFETY: The closure initializes the whole place, and doesn't fail.
        unsafe { pin_init::pin_init_from_closure(init) }
    }
}

impl<T: Child> Drop for Coming<T> {
    fn drop(&mut self) {
        // SAFETY: The parent is open, because it counts this entry.
        let parent = unsafe { self.parent.as_ref() };
        parent.child_list().give_up(self.part);
        parent.children().remove(T::SHARE);
    }
}

/// The entry of an open object.
///
/// # Invariants
///
/// Until it [leaves](Leave::leave):
///
/// - `parent` is open, because it counts this entry.
/// - `entry` is in the parent's list of children, or withdrawn from it.
pub(crate) struct Place<T: Child> {
    parent: NonNull<Obj<T::Parent>>,
    entry: ChildEntry,
}

// SAFETY: The parent is `Sync`: any thread may use its count and list.
unsafe impl<T: Child> Send for Place<T> {}
// SAFETY: The parent is `Sync`, and `entry` is only used under the lock of the list.
unsafe impl<T: Child> Sync for Place<T> {}

impl<T: Child> Place<T> {
    const KIND: &'static ChildKind = &ChildKind {
        open: T::CLASS.open(),
        end: match T::END {
            Some(_) => Some(Self::end),
            None => None,
        },
        describe: Self::describe,
    };

    /// Returns the object that has this entry.
    ///
    /// # Safety
    ///
    /// `entry` is the entry of an open object, and doesn't leave the list for `'a`.
    unsafe fn object<'a>(entry: NonNull<ChildEntry>) -> &'a Obj<T> {
        // SAFETY: `entry` is a field of a `Place`, which is a field of an `Obj`. The object is initialized before
        // its place, and is not freed before the entry leaves the list.
        unsafe {
            let place = kernel::container_of!(entry.as_ptr(), Self, entry);
            &*kernel::container_of!(place, Obj<T>, place)
        }
    }

    /// Ends the object that has this entry.
    ///
    /// # Safety
    ///
    /// `entry` is the entry of an open object, and doesn't leave the list before the return.
    unsafe fn end(entry: NonNull<ChildEntry>) {
        if let Some(end) = T::END {
            // SAFETY: `entry` is the entry of an open object, and stays in the list.
            end(unsafe { Self::object(entry) });
        }
    }

    /// Fills in the listing entry of the object that has this entry. Any context.
    ///
    /// # Safety
    ///
    /// `entry` is the entry of an open object, and doesn't leave the list before the return.
    unsafe fn describe(entry: NonNull<ChildEntry>, about: &mut kfi_helper_object) {
        // SAFETY: `entry` is the entry of an open object, and stays in the list.
        closing::describe(unsafe { Self::object(entry) }, about);
    }

    /// Removes the entry from the list until the result is dropped or [leaves](Withdrawn::leave). Until then, a task
    /// that ends all children waits. Returns `None` if a task ends this object. Any context.
    ///
    /// # Safety
    ///
    /// The entry has not left, and no other thread withdraws it.
    pub(super) unsafe fn try_withdraw(&self) -> Option<Withdrawn<'_, T>> {
        // SAFETY: The entry is in the list of children, because it has not left.
        let withdrawn = unsafe { self.parent().child_list().try_withdraw(&self.entry) };
        // INVARIANT: The entry is withdrawn, so it is announced and not in the list.
        withdrawn.then(|| Withdrawn(self))
    }

    /// Returns the parent.
    fn parent(&self) -> &Obj<T::Parent> {
        // SAFETY: The parent is open, because it counts this entry.
        unsafe { self.parent.as_ref() }
    }
}

impl<T: Child> Leave for Place<T> {
    type Left = Left<T>;

    fn number(&self) -> u64 {
        self.entry.number()
    }

    fn locate(&self, about: &mut kfi_helper_object) -> Option<&DomainCounters> {
        T::Parent::locate(self.parent(), about)
    }

    unsafe fn leave(&self) -> Left<T> {
        // SAFETY: The entry is in the list, because it has not left.
        unsafe { self.parent().child_list().leave(&self.entry) };
        // INVARIANT: The result takes over the count of `self`.
        Left(self.parent)
    }
}

/// An entry that is out of the list of children for a short time.
///
/// # Invariants
///
/// The entry is announced in the list of children, and not in it.
pub(super) struct Withdrawn<'a, T: Child>(&'a Place<T>);

impl<T: Child> Withdrawn<'_, T> {
    /// Leaves the list. Any context.
    pub(super) fn leave(self) -> Left<T> {
        let place = self.0;
        mem::forget(self);
        place.parent().child_list().give_up(place.entry.part());
        // INVARIANT: The result takes over the count of the place.
        Left(place.parent)
    }
}

impl<T: Child> Drop for Withdrawn<'_, T> {
    fn drop(&mut self) {
        // SAFETY: The entry is announced and not in the list. It is pinned, and leaves before the object is freed.
        unsafe { self.0.parent().child_list().join(&self.0.entry) };
    }
}

/// The count of a closed object, which keeps the parent open.
///
/// # Invariants
///
/// The parent is open, because it counts this.
pub(crate) struct Left<T: Child>(NonNull<Obj<T::Parent>>);

impl<T: Child> Left<T> {
    /// Returns the parent of the closed object.
    pub(crate) fn parent(&self) -> &Obj<T::Parent> {
        // SAFETY: The parent is open, because it counts this.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Child> Drop for Left<T> {
    fn drop(&mut self) {
        self.parent().children().remove(T::SHARE);
    }
}

impl<T: Child> Obj<T> {
    /// Returns the parent.
    pub(crate) fn parent(&self) -> &Obj<T::Parent> {
        self.place.parent()
    }
}

#[kernel::macros::kunit_tests(kfabric_children)]
mod tests {
    use super::*;

    #[test]
    fn close_waits_for_children() {
        let children = Children::new();
        assert_eq!(children.add(), Ok(()));
        assert_eq!(children.add(), Ok(()));
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.remove(Share::ONE);
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.remove(Share::ONE);
        assert_eq!(children.close(), Ok(()));
        assert_eq!(children.add(), Err(Errno::EINVAL));
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.reopen();
        assert_eq!(children.add(), Ok(()));
    }

    #[test]
    fn no_more_than_most() {
        let children = Children::new();
        assert_eq!(children.add_below(2), Ok(true));
        assert_eq!(children.add_below(2), Ok(true));
        assert_eq!(children.add_below(2), Ok(false));
        // Others don't count for the limit.
        assert_eq!(children.add(), Ok(()));
        assert_eq!(children.add_below(2), Ok(false));
        children.remove(Share::LIMITED);
        assert_eq!(children.add_below(2), Ok(true));
        assert_eq!(children.close(), Err(Errno::EBUSY));
        for _ in 0..2 {
            children.remove(Share::LIMITED);
        }
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.remove(Share::ONE);
        assert_eq!(children.close(), Ok(()));
        assert_eq!(children.add_below(2), Err(Errno::EINVAL));
    }
}
