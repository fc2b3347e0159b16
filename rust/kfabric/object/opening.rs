// SPDX-License-Identifier: GPL-2.0

//! Opening objects in others.

use super::{
    closing::Close,
    obj::Obj,
    place::{
        Child,
        Coming,
        Parent, //
    }, //
};
use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use core::{
    mem::MaybeUninit,
    ptr, //
};
use kernel::{
    ffi::c_int,
    prelude::*, //
};
use kfi_bindings::kfid;

/// Where C wants the address of a new object put.
///
/// # Invariants
///
/// The pointer is valid for writing.
pub(crate) struct Out<C>(*mut *mut C);

impl<C> Out<C> {
    /// Puts it there.
    pub(crate) fn put(self, opened: *mut C) {
        // SAFETY: By the invariant.
        unsafe { self.0.write(opened) };
    }
}

/// Does a call that opens an object in the one behind `parent`: checks the pointers, and reports a
/// refusal. `open` puts what it opens where it is told. Process context.
///
/// # Safety
///
/// As the C API demands: `parent` is null or an open object, and `out` is null or valid.
pub(crate) unsafe fn call<P: Parent, C>(
    parent: *mut kfid,
    out: *mut *mut C,
    open: impl FnOnce(&Obj<P>, Out<C>) -> Result<(), Refusal>,
) -> c_int {
    if out.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    // SAFETY: Not null, so valid by the requirements of this function.
    unsafe { *out = ptr::null_mut() };
    // SAFETY: By the requirements of this function.
    // INVARIANT: `out` isn't used after the call.
    unsafe { Obj::call(parent, |parent| open(parent, Out(out))) }
}

/// Opens an object in the one behind `parent`, and gives it to C. May sleep.
///
/// `make` gets the parent, and where the object is going to be; it gives what C has of the object,
/// and what the core keeps with it.
///
/// # Safety
///
/// As the C API demands: `parent` is null or an open object, and `out` is null or valid.
pub(crate) unsafe fn open<T, I>(
    parent: *mut kfid,
    out: *mut *mut T::C,
    make: impl FnOnce(&Obj<T::Parent>, *mut T::C) -> Result<(T::C, I), Refusal>,
) -> c_int
where
    T: Close + Child,
    I: PinInit<T>,
{
    // SAFETY: By the requirements of this function.
    unsafe {
        call(parent, out, |parent: &Obj<T::Parent>, out| {
            let place = Coming::<T>::new(parent)?;
            let mut object = KBox::<Obj<T>>::new_uninit(GFP_KERNEL)?;
            let (c, body) = make(parent, object.as_mut_ptr().cast())?;
            out.put(give(object, c, body, place.take()));
            Ok(())
        })
    }
}

/// Makes a new object C's, until it closes it.
pub(super) fn give<T: Close>(
    object: KBox<MaybeUninit<Obj<T>>>,
    c: T::C,
    body: impl PinInit<T>,
    place: impl PinInit<T::Place>,
) -> *mut T::C {
    match object.write_pin_init(Obj::new(c, body, place)) {
        // SAFETY: C doesn't move it, and has it until `close`.
        Ok(object) => KBox::into_raw(unsafe { Pin::into_inner_unchecked(object) }).cast(),
        Err(never) => match never {},
    }
}
