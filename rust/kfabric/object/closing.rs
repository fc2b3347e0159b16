// SPDX-License-Identifier: GPL-2.0

//! Closing objects.

use super::{
    obj::{
        self,
        ClassTable,
        Leave,
        Obj,
        Object, //
    },
    ops_slot::nosys, //
};
use crate::{
    prelude::*,
    support::slow_wait::CloseTimer, //
};
use core::ops::Deref;
use kernel::sync::atomic::{
    Full,
    Release, //
};
use kfi_bindings as c;

/// The exclusive right of a task to close an object. Dropping it leaves the object open.
///
/// While a task has the right, the object's fid has a table whose `close` refuses.
///
/// # Invariants
///
/// The object is open, and its fid has the table whose `close` refuses.
pub(crate) struct Claim<T: Object>(NonNull<Obj<T>>);

const BEING_CLOSED: Refusal = Refusal::new(Errno::EINVAL, c"the object is being closed already");

/// Refuses to close an object that another task closes. Any context.
///
/// # Safety
///
/// No requirements. The type of the slot is unsafe.
unsafe extern "C" fn refuse(_fid: *mut kfid) -> c_int {
    BEING_CLOSED.report(c"close")
}

/// Returns the table pointer of an object's fid.
///
/// # Safety
///
/// `fid` is an object of this core, which is not freed for `'a`.
unsafe fn table<'a>(fid: *mut kfid) -> &'a Atomic<*mut kfi_ops> {
    // SAFETY: `ops` is a field of an object that is not freed for `'a`, and others only read it.
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

    /// Claims the object behind a fid. Reports a refusal, and returns its errno. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is of another class, or another task closes it.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object, ours or another's.
    #[inline]
    pub(crate) unsafe fn new(fid: *mut kfid) -> Result<Self, c_int> {
        // SAFETY: `fid` is null, an error pointer, or an open object.
        if !unsafe { obj::is_of(fid, T::CLASS) } {
            return Err(T::CLASS.refusal().report(c"close"));
        }
        // SAFETY: `fid` is an open object of this core, because its class is `T::CLASS`.
        let table = unsafe { table(fid) };
        let found = table.load(Relaxed);
        // SAFETY: The table is that of an object of this class.
        if unsafe { ClassTable::is_of_closing(found) }
            || table.cmpxchg(found, Self::TABLE.as_ptr(), Full).is_err()
        {
            // The domain can't count the refusal: the other task may have freed the object.
            return Err(BEING_CLOSED.report(c"close"));
        }
        // INVARIANT: The object is open, and this task has replaced the table of its fid.
        NonNull::new(fid.cast())
            .map(Self)
            .ok_or(Errno::EINVAL.to_c())
    }

    /// Keeps the object claimed, and returns it. Any context.
    pub(crate) fn keep(self) -> NonNull<Obj<T>> {
        let object = self.0;
        mem::forget(self);
        object
    }

    /// Takes over a right that was [kept](Self::keep). Any context.
    ///
    /// # Safety
    ///
    /// `object` comes from `keep`, and the caller passes it here once.
    pub(crate) unsafe fn kept(object: NonNull<Obj<T>>) -> Self {
        // INVARIANT: The object comes from `keep`, so it is open and claimed, and this is the only claim.
        Self(object)
    }
}

impl<T: Object> Deref for Claim<T> {
    type Target = Obj<T>;

    fn deref(&self) -> &Obj<T> {
        // SAFETY: The object is open while it is claimed.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Object> Drop for Claim<T> {
    fn drop(&mut self) {
        // SAFETY: The object is open while it is claimed, and begins with its fid.
        unsafe { table(self.0.as_ptr().cast()) }.store(Obj::<T>::TABLE.as_ptr(), Release);
    }
}

/// Fills in the listing entry of an object. Any context; with the lock of the list that the object is in.
pub(super) fn describe<T: Object>(object: &Obj<T>, about: &mut c::kfi_helper_object) {
    about.class = T::CLASS.number();
    about.key = widen(c::KFI_KEY_NOTAVAIL);
    T::describe(object, about);
    // SAFETY: `object` begins with its fid.
    let table = unsafe { table(object.as_ptr().cast()) }.load(Relaxed);
    // SAFETY: The table is that of an object of this core, or of the guard of a fabric. A guard is freed after its
    // fabric has left the list of instances, whose lock the caller holds.
    if unsafe { ClassTable::is_of_closing(table) } {
        about.state = c::kfi_helper_state_KFI_STATE_CLOSING;
    }
}

/// An object that the core frees when the consumer closes it.
pub(crate) trait Close: Object {
    /// Whether the close may sleep.
    const SLEEPS: bool = true;

    /// Prevents new uses of the object and waits for current ones. On success the core drops the object. After an
    /// error the object stays open.
    fn close(object: &Obj<Self>) -> Result<(), Refusal>;
}

/// Returns the table of an object that supports only `kfi_close()`.
pub(crate) const fn slots<T: Close>() -> kfi_ops {
    kfi_ops {
        size: ClassTable::<kfi_ops>::SIZE,
        close: Some(close::<T>),
        bind: nosys!(T, bind),
        control: nosys!(T, control),
        ops_open: nosys!(T, ops_open),
    }
}

/// Closes an object: `kfi_close()`. May sleep if [`Close::SLEEPS`].
///
/// # Safety
///
/// `fid` is an open object of this kind.
unsafe extern "C" fn close<T: Close>(fid: *mut kfid) -> c_int {
    let _noio = T::SLEEPS.then(NoIo::enter);
    let _timer = T::SLEEPS.then(CloseTimer::begin);
    // SAFETY: `fid` is an open object.
    let claim = match unsafe { Claim::<T>::new(fid) } {
        Ok(claim) => claim,
        Err(ret) => return ret,
    };
    if let Err(refusal) = T::close(&claim) {
        return claim.refuse(c"close", refusal);
    }
    let object = claim.keep().as_ptr();
    // SAFETY: This is the only call, because this task has claimed the object and frees it next. `left` is dropped
    // last.
    let left = unsafe { (*object).place.leave() };
    // SAFETY: `object` comes from a box in `obj::give`, and the consumer doesn't use it after `kfi_close()`.
    drop(unsafe { KBox::from_raw(object) });
    // The consumer can close the parent after this.
    drop(left);
    0
}
