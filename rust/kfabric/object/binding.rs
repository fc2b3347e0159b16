// SPDX-License-Identifier: GPL-2.0

//! Binding objects to others.
//!
//! What is bound was opened in the same domain, or in the same fabric.

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

    /// Returns the flags, of which at least one says for `what` they are bound, and others `how`. Any
    /// context.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: they are not such.
    pub(crate) fn flags_of(&self, what: u64, how: u64) -> Result<u64, Refusal> {
        match self.flags & !(what | how) == 0 && self.flags & what != 0 {
            true => Ok(self.flags),
            false => Err(self.bad_flags()),
        }
    }

    fn bad_flags(&self) -> Refusal {
        let refusal = Refusal::new(Errno::EBADFLAGS, c"not the flags of such a binding");
        refusal.value(self.flags)
    }

    /// Binds something in `parent` to the other object, which was just found. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: the flags are not those of such a binding.
    /// - `EINVAL`: the other one was opened elsewhere, or is being closed.
    pub(crate) fn bind<U: Bindable>(
        &self,
        parent: &Obj<U::Parent>,
        other: &Obj<U>,
        flags: u64,
    ) -> Result<U::Bound, Refusal> {
        match self.flags == flags {
            true => self.bind_any(parent, other),
            false => Err(self.bad_flags()),
        }
    }

    /// As [`bind`](Self::bind), with flags that the caller has looked at.
    pub(crate) fn bind_any<U: Bindable>(
        &self,
        parent: &Obj<U::Parent>,
        other: &Obj<U>,
    ) -> Result<U::Bound, Refusal> {
        if !ptr::eq(parent, other.parent()) {
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
