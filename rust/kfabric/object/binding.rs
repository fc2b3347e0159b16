// SPDX-License-Identifier: GPL-2.0

//! Binds of objects to other objects of the same domain or fabric.

use super::{
    children::Child,
    obj::{
        Obj,
        Object, //
    }, //
};
use crate::prelude::*;

/// An object that others bind to.
pub(crate) trait Bindable: Child {
    /// The binding that the other object keeps. Either the bound object counts it, and can't be closed before it is
    /// dropped. Or it outlives the object, and has no effect after that.
    type Bound;

    /// Returns a binding to the object. Process context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: another task closes the object.
    fn bound(object: &Obj<Self>) -> Result<Self::Bound, Refusal>;
}

/// An object that binds to others.
pub(crate) trait Binds: Child {
    /// Binds the object to `other`. May sleep.
    fn bind(object: &Obj<Self>, other: Other<'_>) -> Result<(), Refusal>;
}

/// The other object of a bind, and the flags.
///
/// # Invariants
///
/// `fid` is an object that stays open for `'a`.
pub(crate) struct Other<'a> {
    fid: &'a *mut kfid,
    flags: u64,
}

impl Other<'_> {
    /// Returns the other object if it is of this class. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is of another class.
    pub(crate) fn object<U: Object>(&self) -> Result<&Obj<U>, Refusal> {
        // SAFETY: `fid` is an object that stays open for `'a`.
        unsafe { Obj::from_fid(*self.fid) }
    }

    /// Returns the flags, which must have at least one of `what`, and may have `how`. Any context.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: the flags have none of `what`, or unknown flags.
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

    /// Binds an object in `parent` to the other object. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`: the flags are not `flags`.
    /// - `EINVAL`: the other object has another parent, or another task closes it.
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

    /// Binds an object in `parent` to the other object. The caller has checked the flags. May sleep.
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

/// Stores the binding of an object for one purpose. Process context.
///
/// # Errors
///
/// - `EINVAL`: the object has a binding for that purpose.
pub(super) fn keep<T>(place: &SetOnce<T>, bound: T) -> Result<(), Refusal> {
    match place.populate(bound) {
        true => Ok(()),
        false => Err(TWICE),
    }
}

/// The refusal of a second binding for one purpose.
pub(super) const TWICE: Refusal =
    Refusal::new(Errno::EINVAL, c"something is bound for that already");

/// Binds an object to another: the `bind` slot. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `other` is null or an open object.
pub(super) unsafe extern "C" fn bind<T: Binds>(
    fid: *mut kfid,
    other: *mut kfid,
    flags: u64,
) -> c_int {
    let bind = |object: &Obj<T>| {
        if other.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"nothing to bind"));
        }
        // INVARIANT: `other` isn't null, so it is open for the call.
        T::bind(object, Other { fid: &other, flags })
    };
    // SAFETY: `fid` is an open object.
    unsafe { Obj::call(fid, c"bind", bind) }
}
