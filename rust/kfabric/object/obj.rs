// SPDX-License-Identifier: GPL-2.0

//! Objects, and the lookup of an object by its `struct kfid`.

use super::{
    fid::{
        self,
        Class,
        ClassTable, //
    }, //
};
use crate::prelude::*;
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
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

/// A C structure of an object.
pub(crate) trait Fid {
    /// The offset of the `struct kfid`.
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

/// The core's part of an object of one class. [`Obj`] has the common parts.
pub(crate) trait Object: Sized + 'static {
    /// The C structure.
    type C: Fid;
    /// The entry in the parent: [`Place<Self>`](super::place::Place), or `()` without a parent.
    type Place: Leave;
    /// The class.
    const CLASS: &'static Class;
    /// The table of the fid. [`slots`](super::closing::slots) returns one with `close` only.
    const OPS: kfi_ops;

    /// Returns whether `fid` is an object of this class. Any context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object, ours or another's.
    unsafe fn is_of(fid: *const kfid) -> bool {
        // SAFETY: `fid` is null, an error pointer, or an open object.
        unsafe { fid::is_of(fid, Self::CLASS) }
    }
}

/// The entry of an object in its parent.
pub(crate) trait Leave {
    /// A guard that keeps the parent open.
    type Left;

    /// Leaves the parent's list, so that no task ends the object after the return. Sleeps while a task ends it. Without
    /// an `END` function: any context.
    ///
    /// # Safety
    ///
    /// The caller calls this once, and doesn't use the parent after dropping the result.
    unsafe fn leave(&self) -> Self::Left;
}

impl Leave for () {
    type Left = ();

    unsafe fn leave(&self) {}
}

/// An object: its C structure, the core's part, and its entry in the parent.
///
/// # Invariants
///
/// `c` begins with a `struct kfid` whose table is of the class of `T`.
#[repr(C)]
#[pin_data]
pub(crate) struct Obj<T: Object> {
    // C may write to it: the context belongs to the consumer.
    c: Opaque<T::C>,
    #[pin]
    pub(super) body: T,
    /// Initialized last, because other tasks can find the object by it.
    #[pin]
    pub(super) place: T::Place,
}

// SAFETY: The C API permits to use `c` in any thread.
unsafe impl<T: Object + Send> Send for Obj<T> where T::Place: Send {}
// SAFETY: Only constant fields of `c` are read.
unsafe impl<T: Object + Sync> Sync for Obj<T> where T::Place: Sync {}

impl<T: Object> Obj<T> {
    pub(super) const TABLE: &'static ClassTable<kfi_ops> = &ClassTable::new(T::CLASS, T::OPS);

    /// Returns a fid for a new object of this class.
    pub(crate) fn fid(context: *mut c_void) -> kfid {
        // INVARIANT: `T::C` begins with its fid.
        const { assert!(T::C::AT == 0) };
        fid::new(context, Self::TABLE)
    }

    /// Returns an initializer of an object. `c` begins with a fid of [`fid`](Self::fid).
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

    /// Returns the C structure.
    pub(crate) fn as_ptr(&self) -> *mut T::C {
        self.c.get()
    }

    /// Returns the entry in the parent.
    pub(crate) fn place(&self) -> &T::Place {
        &self.place
    }

    /// Returns the object behind a fid. Any context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an object that stays open for `'a`, of this core or of another provider.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is of another class.
    pub(crate) unsafe fn from_fid<'a>(fid: *mut kfid) -> Result<&'a Self, Refusal> {
        // SAFETY: `fid` is null, an error pointer, or an object that stays open for `'a`.
        if unsafe { T::is_of(fid) } {
            // SAFETY: An object of this class begins with its fid, and stays open for `'a`.
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

    /// Calls `call` with the object behind a fid, and reports a refusal. Process context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object for the call, of this core or of another provider.
    pub(crate) unsafe fn call(
        fid: *mut kfid,
        call: impl FnOnce(&Self) -> Result<(), Refusal>,
    ) -> c_int {
        let _noio = NoIo::enter();
        // SAFETY: `fid` is null, an error pointer, or an open object for the call.
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

// SAFETY: Both functions convert by the body, which is a field of the object.
unsafe impl<T: Object + HasWork<Obj<T>>> HasWork<Self> for Obj<T> {
    unsafe fn raw_get_work(this: *mut Self) -> *mut Work<Self> {
        // SAFETY: `this` points to an object.
        unsafe { T::raw_get_work(&raw mut (*this).body) }
    }

    unsafe fn work_container_of(work: *mut Work<Self>) -> *mut Self {
        // SAFETY: `work` is in the body of an object.
        unsafe { kernel::container_of!(T::work_container_of(work), Self, body) }
    }
}
