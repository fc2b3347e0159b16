// SPDX-License-Identifier: GPL-2.0

//! Opening of objects in a parent.

use super::{
    children::{
        Child,
        Coming,
        Parent, //
    },
    closing::Close,
    obj::Obj, //
};
use crate::prelude::*;
use core::mem::MaybeUninit;

/// The output pointer of a call that opens an object.
///
/// # Invariants
///
/// The pointer is valid for writes.
pub(crate) struct Out<C>(*mut *mut C);

impl<C> Out<C> {
    /// Stores the address of the object.
    pub(crate) fn put(self, opened: *mut C) {
        // SAFETY: The pointer is valid for writes.
        unsafe { self.0.write(opened) };
    }
}

/// Checks the pointers of a call that opens an object, calls `open`, and reports a refusal. `name` is the name of the
/// call. Process context.
///
/// # Safety
///
/// - `parent` is null or an open object.
/// - `out` is null or valid for writes.
pub(crate) unsafe fn call<P: Parent, C>(
    parent: *mut kfid,
    name: &CStr,
    out: *mut *mut C,
    open: impl FnOnce(&Obj<P>, Out<C>) -> Result<(), Refusal>,
) -> c_int {
    if out.is_null() {
        let refusal = Refusal::new(Errno::EINVAL, c"output pointer is NULL");
        // SAFETY: `parent` is null or an open object.
        return unsafe { Obj::<P>::answer(parent, name, Err(refusal)) };
    }
    // SAFETY: `out` isn't null, so it is valid for writes.
    unsafe { *out = ptr::null_mut() };
    // SAFETY: `parent` is null or an open object.
    // INVARIANT: `out` isn't null, so it is valid for writes during the call.
    unsafe { Obj::call(parent, name, |parent| open(parent, Out(out))) }
}

/// Opens an object in a parent: the call of this name. May sleep.
///
/// `make` gets the parent and the address of the object. It returns the C structure and the core's part.
///
/// # Safety
///
/// - `parent` is null or an open object.
/// - `out` is null or valid for writes.
pub(crate) unsafe fn open<T, I>(
    parent: *mut kfid,
    name: &CStr,
    out: *mut *mut T::C,
    make: impl FnOnce(&Obj<T::Parent>, *mut T::C) -> Result<(T::C, I), Refusal>,
) -> c_int
where
    T: Close + Child,
    I: PinInit<T>,
{
    // SAFETY: `parent` is null or an open object. `out` is null or valid for writes.
    unsafe {
        call(parent, name, out, |parent: &Obj<T::Parent>, out| {
            let place = Coming::<T>::new(parent)?;
            let mut object = KBox::<Obj<T>>::new_uninit(GFP_KERNEL)?;
            let (c, body) = make(parent, object.as_mut_ptr().cast())?;
            out.put(give(object, c, body, place.take()));
            Ok(())
        })
    }
}

/// Initializes an object and passes it to C, which has it until `kfi_close()`.
pub(super) fn give<T: Close>(
    object: KBox<MaybeUninit<Obj<T>>>,
    c: T::C,
    body: impl PinInit<T>,
    place: impl PinInit<T::Place>,
) -> *mut T::C {
    match object.write_pin_init(Obj::new(c, body, place)) {
        // SAFETY: The object is not moved before `close` frees it.
        Ok(object) => KBox::into_raw(unsafe { Pin::into_inner_unchecked(object) }).cast(),
        Err(never) => match never {},
    }
}
