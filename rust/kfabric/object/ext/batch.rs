// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_batch_ops_v1`: many regions in one go, and closing without waiting.
//!
//! C header: [`include/kfi_batch_ext.h`](srctree/include/kfi_batch_ext.h)

use crate::{
    object::{
        domain::DomainObject,
        mr::{
            later,
            many::{
                self,
                Answers, //
            },
            now, //
        }, //
    },
    support::{
        errno::Errno,
        num::{
            c_str,
            widen_u32, //
        },
        refusal::Refusal,
        table::Table,
        task::NoIo, //
    }, //
};
use core::slice;
use kernel::{
    ffi::c_int,
    str::CStr, //
};
use kfi_bindings::{
    kfi_batch_ops,
    kfi_closing,
    kfi_mr_attr,
    kfid,
    kfid_mr, //
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

/// The slot `regattr_many`. Sleeps until the device is done.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call; `attrs`, `mrs` and `errs`, if
/// not null, have `count` elements.
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
    // SAFETY: Not null; there is room for `count` by the requirements of this function, and in
    // `errs` unless that is null.
    let mut answers = unsafe { Answers::new(mrs, errs, count) };
    if attrs.is_null() {
        return Refusal::new(Errno::EINVAL, c"attr is NULL").report();
    }
    if batch_flags & !ALL_OR_NONE != 0 {
        let refusal = Refusal::new(Errno::EBADFLAGS, c"flag not supported");
        return refusal.value(batch_flags).report();
    }
    // SAFETY: Not null; has `count` elements by the requirements of this function.
    let attrs = unsafe { slice::from_raw_parts(attrs, count) };
    let all_or_none = batch_flags != 0;
    let _noio = NoIo::enter();
    // SAFETY: `fid` is null or an open object by the requirements of this function.
    let done = unsafe { DomainObject::from_fid(fid) }.and_then(|domain| {
        // SAFETY: What the attributes point to is valid by the requirements of this function.
        unsafe { many::register(domain, attrs, flags, all_or_none, &mut answers) }
    });
    done.map_or_else(Refusal::report, |()| answers.first_error())
}

/// The slot `close_many`. Sleeps until no peer can reach the memory of those that were closed.
///
/// # Safety
///
/// As the C API demands: `mrs` and `errs`, if not null, have `count` elements; each region is null or
/// open, and nobody else uses it.
unsafe extern "C" fn close_many(mrs: *const *mut kfid_mr, count: usize, errs: *mut c_int) -> c_int {
    if mrs.is_null() {
        return Refusal::new(Errno::EINVAL, c"mrs is NULL").report();
    }
    // SAFETY: Not null; has `count` elements by the requirements of this function.
    let mrs = unsafe { slice::from_raw_parts(mrs, count) };
    let _noio = NoIo::enter();
    let mut first = 0;
    // SAFETY: Each is null or open, and `errs` has room, by the requirements of this function.
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

/// The slot `close_later`. Any context.
///
/// # Safety
///
/// As the C API demands: the region is null or open, and nobody else uses it; `closing` has `done` set, and
/// stays until that is called.
unsafe extern "C" fn close_later(mr: *mut kfid_mr, closing: *mut kfi_closing) {
    // SAFETY: By the requirements of this function.
    unsafe { later::close_later(mr, closing) };
}

/// The slot `close_now`. Any context.
///
/// # Safety
///
/// As the C API demands: the region is null or open, and nobody else uses it.
unsafe extern "C" fn close_now(mr: *mut kfid_mr) -> c_int {
    // SAFETY: By the requirements of this function.
    match unsafe { now::close(mr) } {
        Ok(true) => 0,
        // Nothing is wrong.
        Ok(false) => Errno::EAGAIN.to_c(),
        Err(refusal) => refusal.report(),
    }
}
