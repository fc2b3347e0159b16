// SPDX-License-Identifier: GPL-2.0

//! Calling through an object's table of operations, as the inlines of the C headers do.

use crate::errno::Errno;
use core::ptr::NonNull;
use kernel::{
    ffi::c_int,
    pr_warn, //
};
use kfi_bindings::{
    kfi_ops,
    kfid, //
};

/// Calls an operation of a table, `op!(table, type, operation(arguments))`, and gives what it
/// returned.
///
/// A table or an operation that isn't there counts as `ENOSYS`; so does one that lies behind the
/// end of a table that an older provider was built with. A size of 0 is that of a table whose
/// provider doesn't tell it.
///
/// # Safety
///
/// The table is null or valid, and the arguments are what the operation asks for.
macro_rules! op {
    ($table:expr, $type:ty, $op:ident($($arg:expr),* $(,)?)) => {{
        let table: *const $type = $table;
        let end = core::mem::offset_of!($type, $op) + size_of::<*const ()>();
        match table.as_ref() {
            Some(table) if table.size == 0 || table.size >= end => {
                table.$op.map(|op| op($($arg),*))
            }
            _ => None,
        }
        .ok_or($crate::errno::Errno::ENOSYS)
    }};
}
pub(super) use op;

/// What a call that returns 0 on success returned.
pub(super) fn result(ret: c_int) -> Result<(), Errno> {
    match ret {
        0 => Ok(()),
        _ => Err(Errno::from_c(ret)),
    }
}

/// What a call that opens something returned, and left behind. A provider that has succeeded but
/// opened nothing is not believed.
pub(super) fn opened<T>(ret: c_int, object: *mut T) -> Result<NonNull<T>, Errno> {
    result(ret)?;
    NonNull::new(object).ok_or(Errno::EIO)
}

/// `kfi_close()`. May sleep.
///
/// # Safety
///
/// `fid` is an open object. If it is closed, nobody uses it any more.
pub(super) unsafe fn close(fid: NonNull<kfid>) -> Result<(), Errno> {
    let fid = fid.as_ptr();
    // SAFETY: By the requirements of this function.
    result(unsafe { op!((*fid).ops, kfi_ops, close(fid)) }?)
}

/// Says that an object stays open for good, with all that it uses, since its provider refused to
/// close it and nobody is left who could try again.
pub(super) fn leaked(what: &str, errno: Errno) {
    pr_warn!("{what} can't be closed and is leaked: {errno}\n");
}
