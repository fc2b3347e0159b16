// SPDX-License-Identifier: GPL-2.0

//! The operations of a guarded fabric, which go on to the provider's.

use super::{
    Guard,
    GUARD, //
};
use crate::{
    object::fid::ClassTable,
    support::table::NO_SUCH_CALL, //
};
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*, //
};
use kfi_bindings::{
    kfi_ops,
    kfid, //
};

/// The table of a guard.
pub(super) fn table() -> ClassTable<kfi_ops> {
    ClassTable::new(
        &GUARD,
        kfi_ops {
            size: ClassTable::<kfi_ops>::SIZE,
            close: Some(close),
            bind: Some(bind),
            control: Some(control),
            ops_open: Some(ops_open),
        },
    )
}

/// Forwards a slot of a fabric's fid to the provider's table.
macro_rules! forward {
    ($guard:expr, $slot:ident($($arg:expr),*)) => {{
        // SAFETY: The guard is valid, and so is the provider's table, while the fabric is open.
        // The arguments are passed on as they came.
        unsafe {
            match (*(*$guard).inner).$slot {
                Some(op) => op($($arg),*),
                None => NO_SUCH_CALL.report(),
            }
        }
    }};
}

/// The `close` slot of a fabric. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    // SAFETY: The guard has this consumer, so it is there until it goes below.
    unsafe { (*guard).begin_close(fid) };
    let ret = forward!(guard, close(fid));
    // SAFETY: The guard is there as long as it has this consumer. Closed, the fabric may not even
    // be memory any more; otherwise it is open.
    let gone = unsafe {
        match ret {
            0 => (*guard).end_close(),
            _ => Guard::undo_close(guard, fid),
        }
    };
    if gone {
        // Nothing of the provider runs any more on behalf of this fabric.
        // SAFETY: `kfi_fabric()` made the guard as a box, and no fid points to it any more.
        drop(unsafe { KBox::from_raw(guard) });
    }
    ret
}

/// The `bind` slot of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn bind(fid: *mut kfid, other: *mut kfid, flags: u64) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, bind(fid, other, flags))
}

/// The `control` slot of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, control(fid, command, arg))
}

/// The `ops_open` slot of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn ops_open(
    fid: *mut kfid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, ops_open(fid, name, flags, ops, context))
}
