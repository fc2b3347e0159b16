// SPDX-License-Identifier: GPL-2.0

//! Which atomic operations an endpoint has.

use crate::{
    object::ep::EndpointObject,
    post::atomic::Form,
    support::refusal::Refusal, //
};
use kernel::ffi::c_int;
use kfi_bindings::{
    kfi_datatype,
    kfi_op,
    kfid_ep, //
};

/// Says whether there is an operation, and puts into `count` how many elements it goes to at once.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, `count` null or valid.
unsafe fn check(
    ep: *mut kfid_ep,
    form: Form,
    datatype: kfi_datatype,
    op: kfi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: By the requirements of this function; an endpoint begins with its fid.
    let endpoint = unsafe { EndpointObject::from_fid(ep.cast()) };
    let found = endpoint.and_then(|endpoint| {
        let atomics = endpoint.transferring()?.limits().atomics;
        atomics.find(form, datatype, op)?;
        // SAFETY: By the requirements of this function.
        *unsafe { count.as_mut() }.ok_or(Refusal::NULL)? = 1;
        Ok(())
    });
    found.map_or_else(Refusal::report, |()| 0)
}

/// # Safety
///
/// As for [`check`].
pub(super) unsafe extern "C" fn write(
    ep: *mut kfid_ep,
    datatype: kfi_datatype,
    op: kfi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe { check(ep, Form::Plain, datatype, op, count) }
}

/// # Safety
///
/// As for [`check`].
pub(super) unsafe extern "C" fn fetch(
    ep: *mut kfid_ep,
    datatype: kfi_datatype,
    op: kfi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe { check(ep, Form::Fetch, datatype, op, count) }
}

/// # Safety
///
/// As for [`check`].
pub(super) unsafe extern "C" fn compare(
    ep: *mut kfid_ep,
    datatype: kfi_datatype,
    op: kfi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe { check(ep, Form::Compare, datatype, op, count) }
}
