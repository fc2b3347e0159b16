// SPDX-License-Identifier: GPL-2.0

//! Closing objects.

use super::{
    fid::ClassTable,
    obj::{
        Leave,
        Obj,
        Object, //
    }, //
};
use crate::support::{
    noio::NoIo,
    refusal::Refusal,
    table::Slot, //
};
use kernel::{
    ffi::c_int,
    prelude::*, //
};
use kfi_bindings::{
    kfi_ops,
    kfid, //
};

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
        bind: Slot::NOSYS,
        control: Slot::NOSYS,
        ops_open: Slot::NOSYS,
    }
}

/// `kfi_close()` of an object that is C's alone. May sleep if closing such a one may.
///
/// # Safety
///
/// `fid` is an open object of this kind.
unsafe extern "C" fn close<T: Close>(fid: *mut kfid) -> c_int {
    let _noio = T::SLEEPS.then(NoIo::enter);
    let object = fid.cast::<Obj<T>>();
    // SAFETY: `fid` is the first field of the object that C was given, and open.
    if let Err(refusal) = unsafe { &*object }.close() {
        return refusal.report();
    }
    // SAFETY: Once, since the object goes next.
    let left = unsafe { (*object).place().leave() };
    // SAFETY: C was given `object` as a box, by `opening`, and doesn't use it any more.
    drop(unsafe { KBox::from_raw(object) });
    // The parent may be closed from here on.
    drop(left);
    0
}
