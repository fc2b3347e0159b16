// SPDX-License-Identifier: GPL-2.0

//! Closing objects.

use super::{
    fid::{
        self,
        ClassTable, //
    },
    obj::{
        Leave,
        Obj,
        Object, //
    }, //
};
use crate::support::{
    errno::Errno,
    refusal::Refusal,
    table::OpsSlot,
    task::NoIo, //
};
use core::{
    mem,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed,
        Release, //
    }, //
};
use kfi_bindings::{
    kfi_ops,
    kfid, //
};

/// The right to close an object, which one task has at a time. Dropped, it is given up, and the object
/// is as open as before.
///
/// While a task has it, the object's fid has a table whose `close` refuses.
///
/// # Invariants
///
/// The object is open, and its fid has that table.
pub(crate) struct Claim<T: Object>(NonNull<Obj<T>>);

const BEING_CLOSED: Refusal = Refusal::new(Errno::EINVAL, c"the object is being closed already");

/// The `close` slot of an object that is being closed. Any context.
///
/// # Safety
///
/// None; slots are unsafe functions.
unsafe extern "C" fn refuse(_fid: *mut kfid) -> c_int {
    BEING_CLOSED.report()
}

/// The table that an object's fid points to.
///
/// # Safety
///
/// `fid` is an object of the core's, that isn't freed for `'a`.
unsafe fn table<'a>(fid: *mut kfid) -> &'a Atomic<*mut kfi_ops> {
    // SAFETY: The field is valid by the requirements of this function. Others only read it.
    unsafe { Atomic::from_ptr(&raw mut (*fid).ops) }
}

impl<T: Object> Claim<T> {
    const TABLE: &'static ClassTable<kfi_ops> = &ClassTable::of_closing(
        T::CLASS,
        kfi_ops {
            close: Some(refuse),
            ..T::OPS
        },
    );

    /// Claims the object behind a fid. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it isn't an object of this kind, or somebody else is closing it.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object, ours or another's.
    #[inline]
    pub(crate) unsafe fn new(fid: *mut kfid) -> Result<Self, Refusal> {
        // SAFETY: `fid` is null, an error pointer, or an open object, as the caller promises.
        if !unsafe { fid::is_of(fid, T::CLASS) } {
            return Err(T::CLASS.refusal());
        }
        // SAFETY: `fid` is an object of the core's, as was just found.
        let table = unsafe { table(fid) };
        let found = table.load(Relaxed);
        // SAFETY: The table is that of an object of this class.
        if unsafe { ClassTable::is_of_closing(found) }
            || table.cmpxchg(found, Self::TABLE.as_ptr(), Full).is_err()
        {
            return Err(BEING_CLOSED);
        }
        // INVARIANT: Its fid has the table, which was another one before.
        NonNull::new(fid.cast()).map(Self).ok_or(BEING_CLOSED)
    }

    /// Keeps the object claimed, by whoever has it now. Any context.
    pub(crate) fn keep(self) -> NonNull<Obj<T>> {
        let object = self.0;
        mem::forget(self);
        object
    }

    /// Takes over the right from whoever has [kept](Self::keep) it. Any context.
    ///
    /// # Safety
    ///
    /// `object` comes from `keep`, and its right is taken over once.
    pub(crate) unsafe fn kept(object: NonNull<Obj<T>>) -> Self {
        // INVARIANT: The object comes from `keep`, so it is open and claimed, and this is the only claim.
        Self(object)
    }
}

impl<T: Object> Deref for Claim<T> {
    type Target = Obj<T>;

    fn deref(&self) -> &Obj<T> {
        // SAFETY: The object is open by the invariant.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Object> Drop for Claim<T> {
    fn drop(&mut self) {
        // SAFETY: The object is open by the invariant; its fid is its first field.
        unsafe { table(self.0.as_ptr().cast()) }.store(Obj::<T>::TABLE.as_ptr(), Release);
    }
}

/// An object that is C's alone, and goes when C closes it.
pub(crate) trait Close: Object {
    /// Closing may sleep.
    const SLEEPS: bool = true;

    /// Refuses to be closed, and is as open as before; or lets nobody begin to use the object, and
    /// waits for those who do. Dropped next.
    fn close(&self) -> Result<(), Refusal>;
}

/// What every object has, in one that knows nothing but being closed.
pub(crate) const fn slots<T: Close>() -> kfi_ops {
    kfi_ops {
        size: ClassTable::<kfi_ops>::SIZE,
        close: Some(close::<T>),
        bind: OpsSlot::NOSYS,
        control: OpsSlot::NOSYS,
        ops_open: OpsSlot::NOSYS,
    }
}

/// `kfi_close()` of an object that is C's alone. May sleep if closing such a one may.
///
/// # Safety
///
/// `fid` is an open object of this kind.
unsafe extern "C" fn close<T: Close>(fid: *mut kfid) -> c_int {
    let _noio = T::SLEEPS.then(NoIo::enter);
    // SAFETY: `fid` is an open object by the requirements of this function.
    let claimed = unsafe { Claim::<T>::new(fid) };
    let claim = match claimed.and_then(|claim| claim.close().map(|()| claim)) {
        Ok(claim) => claim,
        Err(refusal) => return refusal.report(),
    };
    let object = claim.keep().as_ptr();
    // SAFETY: Once, since the object goes next, and nobody else has claimed it.
    let left = unsafe { (*object).place().leave() };
    // SAFETY: C was given `object` as a box, by `opening`, and doesn't use it any more.
    drop(unsafe { KBox::from_raw(object) });
    // The parent may be closed from here on.
    drop(left);
    0
}
