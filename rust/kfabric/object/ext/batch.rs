// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_batch_ops_v1`: calls for many regions, and closes that do not wait.
//!
//! C header: [`include/kfi_batch_ext.h`](srctree/include/kfi_batch_ext.h)

use crate::{
    object::{
        domain::DomainObject,
        mr::{
            close,
            later,
            many::{
                self,
                Answers, //
            }, //
        }, //
    },
    prelude::*,
    support::{
        num::c_str,
        table::Table, //
    }, //
};
use kfi_bindings::{
    kfi_batch_ops,
    kfi_closing, //
};

pub(crate) const ALL_OR_NONE: u64 = widen_u32(kfi_bindings::KFI_BATCH_ALL_OR_NONE);

pub(crate) const NAME: &CStr = c_str(kfi_bindings::KFI_BATCH_OPS_1);

pub(crate) static OPS: Table<kfi_batch_ops> = Table(kfi_batch_ops {
    size: size_of::<kfi_batch_ops>(),
    regattr_many: Some(regattr_many),
    close_many: Some(close_many),
    close_later: Some(close_later),
    close_now: Some(close_now),
});

/// Registers regions: the `regattr_many` slot. Sleeps until the device is done.
///
/// # Safety
///
/// - `fid` is null or an open object.
/// - `attrs` is null or has `count` elements, whose pointers are null or valid for the call.
/// - `mrs` and `errs` are null or valid for writes of `count` elements.
unsafe extern "C" fn regattr_many(
    fid: *mut kfid,
    attrs: *const kfi_mr_attr,
    count: usize,
    flags: u64,
    batch_flags: u64,
    mrs: *mut *mut kfid_mr,
    errs: *mut c_int,
) -> c_int {
    if mrs.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    // SAFETY: `mrs` isn't null, so it is valid for writes of `count` elements. `errs` is null or valid for as many.
    let mut answers = unsafe { Answers::new(mrs, errs, count) };
    if attrs.is_null() {
        return Refusal::new(Errno::EINVAL, c"attr is NULL").report();
    }
    if batch_flags & !ALL_OR_NONE != 0 {
        let refusal = Refusal::new(Errno::EBADFLAGS, c"flag not supported");
        return refusal.value(batch_flags).report();
    }
    // SAFETY: `attrs` isn't null, so it has `count` elements.
    let attrs = unsafe { slice::from_raw_parts(attrs, count) };
    let all_or_none = batch_flags != 0;
    let _noio = NoIo::enter();
    // SAFETY: `fid` is null or an open object.
    let done = unsafe { DomainObject::from_fid(fid) }.and_then(|domain| {
        // SAFETY: The pointers in the attributes are null or valid for the call.
        unsafe { many::register(domain, attrs, flags, all_or_none, &mut answers) }
    });
    done.map_or_else(Refusal::report, |()| answers.first_error())
}

/// Closes regions: the `close_many` slot. Sleeps until no peer can access the memory of the closed regions.
///
/// # Safety
///
/// - `mrs` is null or has `count` elements. Each is null or an open region that no one else uses.
/// - `errs` is null or valid for writes of `count` elements.
unsafe extern "C" fn close_many(mrs: *const *mut kfid_mr, count: usize, errs: *mut c_int) -> c_int {
    if mrs.is_null() {
        return Refusal::new(Errno::EINVAL, c"mrs is NULL").report();
    }
    // SAFETY: `mrs` isn't null, so it has `count` elements.
    let mrs = unsafe { slice::from_raw_parts(mrs, count) };
    let _noio = NoIo::enter();
    let mut first = 0;
    // SAFETY: Each region is null or open, and `errs` is null or valid for writes of `count` elements.
    unsafe {
        many::close(mrs, |index, ret| {
            if !errs.is_null() {
                errs.add(index).write(ret);
            }
            if first == 0 {
                first = ret;
            }
        });
    }
    first
}

/// Closes a region without waiting: the `close_later` slot. Any context.
///
/// # Safety
///
/// - `mr` is null or an open region that no one else uses.
/// - `closing` is valid, with `done` set, until the core calls `done`.
unsafe extern "C" fn close_later(mr: *mut kfid_mr, closing: *mut kfi_closing) {
    // SAFETY: `mr` is null or open and unused by others. `closing` stays valid until the core calls `done`.
    unsafe { later::close_later(mr, closing) };
}

/// Closes a region if that needs no wait: the `close_now` slot. Any context.
///
/// # Safety
///
/// `mr` is null or an open region that no one else uses.
unsafe extern "C" fn close_now(mr: *mut kfid_mr) -> c_int {
    // SAFETY: `mr` is null or an open region that no one else uses.
    match unsafe { close::close_now(mr) } {
        Ok(true) => 0,
        // -KFI_EAGAIN is no mistake of the caller, so there is no trace event.
        Ok(false) => Errno::EAGAIN.to_c(),
        Err(refusal) => refusal.report(),
    }
}
