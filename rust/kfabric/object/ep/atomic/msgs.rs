// SPDX-License-Identifier: GPL-2.0

//! Atomic operations that a structure describes.

use super::request::{
    call,
    one,
    Request,
    Word, //
};
use crate::{
    object::ep::posting::CallFlags,
    post::atomic::Form,
    support::refusal::Refusal, //
};
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_ioc,
    kfi_msg_atomic,
    kfid_ep, //
};

/// What a structure asks for, without what only some calls have.
///
/// # Safety
///
/// As the C API demands: `msg` is null or valid with all that it points to.
unsafe fn read(msg: *const kfi_msg_atomic, flags: u64, form: Form) -> Result<Request, Refusal> {
    // SAFETY: By the requirements of this function.
    unsafe {
        let msg = msg.as_ref().ok_or(Refusal::NULL)?;
        one(msg.rma_iov_count)?;
        let at = msg.rma_iov.as_ref().ok_or(Refusal::NULL)?;
        one(at.count)?;
        Ok(Request {
            form,
            datatype: msg.datatype,
            op: msg.op,
            operand: Word::listed(msg.msg_iov, msg.desc, msg.iov_count),
            compare: Word::NONE,
            result: Word::NONE,
            address: at.addr,
            key: at.key,
            flags: CallFlags::These(flags),
            context: msg.context,
        })
    }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call, with all that it points to.
pub(super) unsafe extern "C" fn write(
    ep: *mut kfid_ep,
    msg: *const kfi_msg_atomic,
    flags: u64,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { call(ep, read(msg, flags, Form::Plain)) }
}

/// # Safety
///
/// As for `write`; what `resultv` points to stays until the operation has ended.
pub(super) unsafe extern "C" fn fetch(
    ep: *mut kfid_ep,
    msg: *const kfi_msg_atomic,
    resultv: *mut kfi_ioc,
    result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let result = Word::listed(resultv, result_desc, result_count);
        let request = read(msg, flags, Form::Fetch);
        call(ep, request.map(|request| Request { result, ..request }))
    }
}

/// # Safety
///
/// As for [`fetch`].
pub(super) unsafe extern "C" fn compare(
    ep: *mut kfid_ep,
    msg: *const kfi_msg_atomic,
    comparev: *const kfi_ioc,
    compare_desc: *mut *mut c_void,
    compare_count: usize,
    resultv: *mut kfi_ioc,
    result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let compare = Word::listed(comparev, compare_desc, compare_count);
        let result = Word::listed(resultv, result_desc, result_count);
        let request = read(msg, flags, Form::Compare);
        call(
            ep,
            request.map(|request| Request {
                compare,
                result,
                ..request
            }),
        )
    }
}
