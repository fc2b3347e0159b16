// SPDX-License-Identifier: GPL-2.0

//! The `struct kfid` at the start of every object.

use crate::{
    num,
    table::Table, //
};
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
