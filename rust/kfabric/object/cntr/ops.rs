// SPDX-License-Identifier: GPL-2.0

//! The operations of a counter.

use super::CounterObject;
use crate::{
    object::queues::{
        self,
        CANT_WAIT, //
    },
    support::{
        errno::Errno,
        table::Table, //
    }, //
};
use kernel::ffi::c_int;
use kfi_bindings::{
    kfi_ops_cntr,
    kfid_cntr, //
};

/// The operations of a counter.
pub(super) static OPS: Table<kfi_ops_cntr> = Table(kfi_ops_cntr {
    size: size_of::<kfi_ops_cntr>(),
    read: Some(read),
    readerr: Some(readerr),
    add: Some(add),
    set: Some(set),
    wait: Some(wait),
    adderr: Some(adderr),
    seterr: Some(seterr),
});

/// The object behind a counter that C calls.
///
/// # Safety
///
/// `cntr` is an open counter of this core, and not closed during `'a`.
unsafe fn of<'a>(cntr: *mut kfid_cntr) -> &'a CounterObject {
    // SAFETY: `cntr` is the first field of the object that `open` gave out.
    unsafe { &*cntr.cast::<CounterObject>() }
}

/// The `read` slot of a counter. Any context.
///
/// # Safety
///
/// `cntr` is an open counter of this core.
unsafe extern "C" fn read(cntr: *mut kfid_cntr) -> u64 {
    // SAFETY: By the requirements of this function.
    unsafe { of(cntr) }.counter().value()
}

/// The `readerr` slot of a counter. Any context.
///
/// # Safety
///
/// `cntr` is an open counter of this core.
unsafe extern "C" fn readerr(cntr: *mut kfid_cntr) -> u64 {
    // SAFETY: By the requirements of this function.
    unsafe { of(cntr) }.counter().errors()
}

/// The calls that change a counter, which can't fail.
macro_rules! change_call {
    ($($name:ident => $method:ident;)*) => {
        $(
            /// A slot of a counter that changes a number. Any context.
            ///
            /// # Safety
            ///
            /// `cntr` is an open counter of this core.
            unsafe extern "C" fn $name(cntr: *mut kfid_cntr, value: u64) -> c_int {
                // SAFETY: By the requirements of this function.
                unsafe { of(cntr) }.counter().$method(value);
                0
            }
        )*
    };
}

change_call! {
    add => add;
    adderr => add_err;
    set => set;
    seterr => set_err;
}

/// `kfi_cntr_wait()`. Sleeps, interruptibly.
///
/// # Safety
///
/// `cntr` is an open counter of this core.
unsafe extern "C" fn wait(cntr: *mut kfid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: By the requirements of this function; it is not closed while somebody waits.
    let object = unsafe { of(cntr) };
    if !object.can_wait {
        return CANT_WAIT.report();
    }
    let waited = object.counter().wait(threshold, queues::timeout(timeout));
    waited.map_or_else(Errno::to_c, |()| 0)
}
