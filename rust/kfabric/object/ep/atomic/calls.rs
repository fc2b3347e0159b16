// SPDX-License-Identifier: GPL-2.0

//! Atomic operations by arguments.

use super::request::{
    call,
    Request,
    Word, //
};
use crate::{
    object::ep::posting::CallFlags,
    post::atomic::Form, //
};
use core::ptr;
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_addr_t,
    kfi_datatype,
    kfi_ioc,
    kfi_op,
    kfid_ep, //
};

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call.
pub(super) unsafe extern "C" fn write(
    ep: *mut kfid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    _dest_addr: kfi_addr_t,
    address: u64,
    key: u64,
    datatype: kfi_datatype,
    op: kfi_op,
    context: *mut c_void,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let request = Request {
            form: Form::Plain,
            datatype,
            op,
            operand: Word::new(buf, count, desc),
            compare: Word::NONE,
            result: Word::NONE,
            address,
            key,
            flags: CallFlags::Default,
            context,
        };
        call(ep, Ok(request))
    }
}

/// # Safety
///
/// As for `write`.
pub(super) unsafe extern "C" fn writev(
    ep: *mut kfid_ep,
    iov: *const kfi_ioc,
    desc: *mut *mut c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    address: u64,
    key: u64,
    datatype: kfi_datatype,
    op: kfi_op,
    context: *mut c_void,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let request = Request {
            form: Form::Plain,
            datatype,
            op,
            operand: Word::listed(iov, desc, count),
            compare: Word::NONE,
            result: Word::NONE,
            address,
            key,
            flags: CallFlags::Default,
            context,
        };
        call(ep, Ok(request))
    }
}

/// # Safety
///
/// As for `write`.
pub(super) unsafe extern "C" fn inject(
    ep: *mut kfid_ep,
    buf: *const c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    address: u64,
    key: u64,
    datatype: kfi_datatype,
    op: kfi_op,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let request = Request {
            form: Form::Plain,
            datatype,
            op,
            operand: Word::new(buf, count, ptr::null_mut()),
            compare: Word::NONE,
            result: Word::NONE,
            address,
            key,
            flags: CallFlags::Inject,
            context: ptr::null_mut(),
        };
        call(ep, Ok(request))
    }
}

/// # Safety
///
/// As for `write`; what `result` points to stays until the operation has ended.
pub(super) unsafe extern "C" fn fetch(
    ep: *mut kfid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    result: *mut c_void,
    result_desc: *mut c_void,
    _dest_addr: kfi_addr_t,
    address: u64,
    key: u64,
    datatype: kfi_datatype,
    op: kfi_op,
    context: *mut c_void,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let request = Request {
            form: Form::Fetch,
            datatype,
            op,
            operand: Word::new(buf, count, desc),
            compare: Word::NONE,
            result: Word::new(result, count, result_desc),
            address,
            key,
            flags: CallFlags::Default,
            context,
        };
        call(ep, Ok(request))
    }
}

/// # Safety
///
/// As for [`fetch`].
pub(super) unsafe extern "C" fn fetchv(
    ep: *mut kfid_ep,
    iov: *const kfi_ioc,
    desc: *mut *mut c_void,
    count: usize,
    resultv: *mut kfi_ioc,
    result_desc: *mut *mut c_void,
    result_count: usize,
    _dest_addr: kfi_addr_t,
    address: u64,
    key: u64,
    datatype: kfi_datatype,
    op: kfi_op,
    context: *mut c_void,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let request = Request {
            form: Form::Fetch,
            datatype,
            op,
            operand: Word::listed(iov, desc, count),
            compare: Word::NONE,
            result: Word::listed(resultv, result_desc, result_count),
            address,
            key,
            flags: CallFlags::Default,
            context,
        };
        call(ep, Ok(request))
    }
}

/// # Safety
///
/// As for [`fetch`].
pub(super) unsafe extern "C" fn compare(
    ep: *mut kfid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    compare: *const c_void,
    compare_desc: *mut c_void,
    result: *mut c_void,
    result_desc: *mut c_void,
    _dest_addr: kfi_addr_t,
    address: u64,
    key: u64,
    datatype: kfi_datatype,
    op: kfi_op,
    context: *mut c_void,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let request = Request {
            form: Form::Compare,
            datatype,
            op,
            operand: Word::new(buf, count, desc),
            compare: Word::new(compare, count, compare_desc),
            result: Word::new(result, count, result_desc),
            address,
            key,
            flags: CallFlags::Default,
            context,
        };
        call(ep, Ok(request))
    }
}

/// # Safety
///
/// As for [`fetch`].
pub(super) unsafe extern "C" fn comparev(
    ep: *mut kfid_ep,
    iov: *const kfi_ioc,
    desc: *mut *mut c_void,
    count: usize,
    comparev: *const kfi_ioc,
    compare_desc: *mut *mut c_void,
    compare_count: usize,
    resultv: *mut kfi_ioc,
    result_desc: *mut *mut c_void,
    result_count: usize,
    _dest_addr: kfi_addr_t,
    address: u64,
    key: u64,
    datatype: kfi_datatype,
    op: kfi_op,
    context: *mut c_void,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        let request = Request {
            form: Form::Compare,
            datatype,
            op,
            operand: Word::listed(iov, desc, count),
            compare: Word::listed(comparev, compare_desc, compare_count),
            result: Word::listed(resultv, result_desc, result_count),
            address,
            key,
            flags: CallFlags::Default,
            context,
        };
        call(ep, Ok(request))
    }
}
