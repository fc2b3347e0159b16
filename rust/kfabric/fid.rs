// SPDX-License-Identifier: GPL-2.0

//! The `struct kfid` at the start of every object.

use crate::{
    num,
    table::Table, //
};
use core::ptr;
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_ops,
    kfid, //
};

/// A fid of this class for a new object.
pub(crate) fn new(class: u32, context: *mut c_void, ops: &'static Table<kfi_ops>) -> kfid {
    kfid {
        fclass: num::index(class),
        context,
        ops: ops.as_ptr(),
        ..pin_init::zeroed()
    }
}

/// Is it an object with this table? C may be writing to other fields.
///
/// # Safety
///
/// `fid` is null or an open object.
pub(crate) unsafe fn has_ops(fid: *const kfid, ops: &'static Table<kfi_ops>) -> bool {
    // SAFETY: By the requirements of this function.
    !fid.is_null() && ptr::eq(unsafe { (*fid).ops }, ops.as_ptr())
}
