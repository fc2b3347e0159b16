// SPDX-License-Identifier: GPL-2.0

//! What all objects have in common, and how a `struct kfid` leads to one.

use super::{
    fid::{
        self,
        Class,
        ClassTable, //
    }, //
};
use crate::support::{
    refusal::Refusal,
    task::NoIo, //
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    types::Opaque,
    workqueue::{
        HasWork,
        Work, //
    }, //
};
use kfi_bindings::{
    kfi_ops,
    kfid, //
};

/// What C has of an object.
pub(crate) trait Fid {
    /// The offset of its `struct kfid`.
    const AT: usize;
}

macro_rules! fids {
    ($($name:ident),* $(,)?) => {
        $(
            impl Fid for kfi_bindings::$name {
                const AT: usize = core::mem::offset_of!(kfi_bindings::$name, fid);
            }
        )*
    };
}

fids!(
    kfid_av,
    kfid_cntr,
    kfid_cq,
    kfid_domain,
    kfid_ep,
    kfid_eq,
    kfid_fabric,
    kfid_mr,
    kfid_pep,
);

/// What the core keeps with an object of one kind; the rest is the same for all, and in [`Obj`].
pub(crate) trait Object: Sized + 'static {
    /// What C has of it.
    type C: Fid;
    /// Where it is counted: [`Place<Self>`](super::place::Place), or nothing for what isn't opened
    /// in an object.
    type Place: Leave;
    /// What tells it from other kinds.
    const CLASS: &'static Class;
    /// What every object has. [`slots`](super::closing::slots) gives what most do.
    const OPS: kfi_ops;

    /// Returns whether this is an object of this kind. Any context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object, ours or another's.
    unsafe fn is_of(fid: *const kfid) -> bool {
        // SAFETY: By the requirements of this function.
        unsafe { fid::is_of(fid, Self::CLASS) }
    }
}

/// The place of an object in the one that it was opened in.
pub(crate) trait Leave {
    /// What keeps that one open, if there is one, until it is dropped.
    type Left;

    /// Leaves the place: the object isn't ended by others any more. Sleeps while it is; where there
    /// is nothing to end: any context.
    ///
    /// # Safety
    ///
    /// Called once. What the object was opened in is not used after what this gives was dropped.
    unsafe fn leave(&self) -> Self::Left;
}

impl Leave for () {
    type Left = ();

    unsafe fn leave(&self) {}
}

/// An object: what C has of it, what the core keeps with it, and its place among the children of
/// the object that it was opened in.
///
/// # Invariants
///
/// C points to `c`, which begins with a `struct kfid` whose table is of the class of `T`.
#[repr(C)]
#[pin_data]
pub(crate) struct Obj<T: Object> {
    // C may write to it: the context is the consumer's.
    c: Opaque<T::C>,
    #[pin]
    pub(super) body: T,
    /// Made last: from then on others may find the object by it.
    #[pin]
    pub(super) place: T::Place,
}

// SAFETY: `c` is only passed on, or used as C does, which has it in any thread.
unsafe impl<T: Object + Send> Send for Obj<T> where T::Place: Send {}
// SAFETY: `c` isn't read but for what never changes.
unsafe impl<T: Object + Sync> Sync for Obj<T> where T::Place: Sync {}

impl<T: Object> Obj<T> {
    pub(super) const TABLE: &'static ClassTable<kfi_ops> = &ClassTable::new(T::CLASS, T::OPS);

    /// A fid for a new object of this kind.
    pub(crate) fn fid(context: *mut c_void) -> kfid {
        // INVARIANT: What begins with this fid is of the class of `T`.
        const { assert!(T::C::AT == 0) };
        fid::new(context, Self::TABLE)
    }

    /// An initialiser; `c` begins with a fid by [`fid`](Self::fid).
    pub(crate) fn new(
        c: T::C,
        body: impl PinInit<T>,
        place: impl PinInit<T::Place>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            c: Opaque::new(c),
            body <- body,
            place <- place,
        })
    }

    /// What C has of it.
    pub(crate) fn as_ptr(&self) -> *mut T::C {
        self.c.get()
    }

    /// Its place among the children of another.
    pub(crate) fn place(&self) -> &T::Place {
        &self.place
    }

    /// Returns the object behind a fid. Any context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object, ours or another's; the reference is not used
    /// after it was closed.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is of another kind.
    pub(crate) unsafe fn from_fid<'a>(fid: *mut kfid) -> Result<&'a Self, Refusal> {
        // SAFETY: By the requirements of this function.
        if unsafe { T::is_of(fid) } {
            // SAFETY: By the invariant, the fid of an object of this kind is its first field.
            Ok(unsafe { &*fid.cast::<Self>() })
        } else {
            Err(T::CLASS.refusal())
        }
    }

    /// Returns the object that C knows by `c`. Any context.
    ///
    /// # Safety
    ///
    /// `c` is what [`as_ptr`](Self::as_ptr) of an object of this kind returned, and the object stays open for
    /// `'a`.
    pub(crate) unsafe fn from_c<'a>(c: *mut T::C) -> &'a Self {
        // SAFETY: `c` is the first field of an object that stays open for `'a`.
        unsafe { &*c.cast::<Self>() }
    }

    /// Does a call on the object behind a fid, and reports a refusal. Process context.
    ///
    /// # Safety
    ///
    /// As [`from_fid`](Self::from_fid), until this has returned.
    pub(crate) unsafe fn call(
        fid: *mut kfid,
        call: impl FnOnce(&Self) -> Result<(), Refusal>,
    ) -> c_int {
        let _noio = NoIo::enter();
        // SAFETY: By the requirements of this function.
        let done = unsafe { Self::from_fid(fid) }.and_then(call);
        done.map_or_else(Refusal::report, |()| 0)
    }
}

impl<T: Object> Deref for Obj<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.body
    }
}

impl<T: Object> DerefMut for Obj<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.body
    }
}

// SAFETY: Both functions go by way of the body, which is a field of the object.
unsafe impl<T: Object + HasWork<Obj<T>>> HasWork<Self> for Obj<T> {
    unsafe fn raw_get_work(this: *mut Self) -> *mut Work<Self> {
        // SAFETY: By the requirements of this function, `this` points to an object.
        unsafe { T::raw_get_work(&raw mut (*this).body) }
    }

    unsafe fn work_container_of(work: *mut Work<Self>) -> *mut Self {
        // SAFETY: By the requirements of this function, `work` is in the body of an object.
        unsafe { kernel::container_of!(T::work_container_of(work), Self, body) }
    }
}
