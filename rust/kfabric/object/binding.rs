// SPDX-License-Identifier: GPL-2.0

//! Binding objects to others.
//!
//! Only siblings are bound: what was opened in the same domain, or in the same fabric.

use super::{
    obj::{
        Obj,
        Object, //
    },
    place::Child, //
};
use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use core::ptr;
use kernel::ffi::c_int;
use kfi_bindings::kfid;

/// An object that others can be bound to.
pub(crate) trait Bindable: Child {
    /// What who is bound to it keeps. It either counts at the object, which isn't closed before this
    /// is dropped; or outlives the object, which does nothing any more then.
    type Bound;

    /// Returns what who is bound to it keeps. Process context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is being closed.
    fn bound(object: &Obj<Self>) -> Result<Self::Bound, Refusal>;
}

/// An object that can be bound to others.
pub(crate) trait Binds: Child {
    /// Binds it to `other`. May sleep.
    fn bind(object: &Obj<Self>, other: Other<'_>) -> Result<(), Refusal>;
}

/// What an object is to be bound to, and with which flags.
///
/// # Invariants
///
/// The fid is that of an open object, which stays open for `'a`.
pub(crate) struct Other<'a> {
    fid: &'a *mut kfid,
    flags: u64,
}

impl Other<'_> {
    /// Returns the other object if it is of this kind. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is of another.
    pub(crate) fn object<U: Object>(&self) -> Result<&Obj<U>, Refusal> {
        // SAFETY: The fid is that of an open object by the invariant, and stays open.
        unsafe { Obj::from_fid(*self.fid) }
    }

    /// Binds `object` to the other one, which was just found. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: the flags are not those of such a binding.
    /// - `EINVAL`: they have not the same parent, or the other one is being closed.
    pub(crate) fn bind<T, U>(
        &self,
        object: &Obj<T>,
        other: &Obj<U>,
        flags: u64,
    ) -> Result<U::Bound, Refusal>
    where
        T: Child,
        U: Bindable<Parent = T::Parent>,
    {
        if self.flags != flags {
            let refusal = Refusal::new(Errno::EBADFLAGS, c"not the flags of such a binding");
            return Err(refusal.value(self.flags));
        }
        if !ptr::eq(object.parent(), other.parent()) {
            let why = c"an object of another domain, or of another fabric";
            return Err(Refusal::new(Errno::EINVAL, why));
        }
        U::bound(other)
    }
}

/// The `bind` slot of an object. May sleep.
///
/// # Safety
///
/// As the C API demands: `fid` is an open object, `other` null or an open object.
pub(super) unsafe extern "C" fn bind<T: Binds>(
    fid: *mut kfid,
    other: *mut kfid,
    flags: u64,
) -> c_int {
    let bind = |object: &Obj<T>| {
        if other.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"nothing to bind"));
        }
        // INVARIANT: Not null, so an open object by the requirements of this function.
        T::bind(object, Other { fid: &other, flags })
    };
    // SAFETY: `fid` is an open object by the requirements of this function.
    unsafe { Obj::call(fid, bind) }
}
