// SPDX-License-Identifier: GPL-2.0

//! Writing to a peer's memory.

use super::access::{
    at,
    by_msg, //
};
use crate::{
    object::ep::{
        args::{
            buffer,
            of_buffer,
            of_list, //
        },
        posting::{
            call,
            CallFlags,
            Kind, //
        }, //
    },
    post::buffers::RawList, //
};
use core::ptr;
use kernel::ffi::c_void;
use kfi_bindings::{
    bio_vec,
    kfi_addr_t,
    kfi_msg_rma,
    kfid_ep,
    kvec,
    scatterlist, //
};

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call; the memory stays until the access
/// has ended.
pub(super) unsafe extern "C" fn write(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    desc: *mut c_void,
    _dest_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let kvec = buffer(buf, len);
    let made = of_buffer(&kvec, &desc, CallFlags::Default, None, context);
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Write, at(made, addr, key)) }
}

/// # Safety
///
/// As for `write`.
pub(super) unsafe extern "C" fn writev(
    ep: *mut kfid_ep,
    iov: *const kvec,
    desc: *mut *mut c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        let made = of_list(RawList::Kvec(iov), desc, count, context);
        call(ep, Kind::Write, at(made, addr, key))
    }
}

/// # Safety
///
/// As for `write`.
pub(super) unsafe extern "C" fn writebv(
    ep: *mut kfid_ep,
    biov: *const bio_vec,
    desc: *mut *mut c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        let made = of_list(RawList::Bvec(biov), desc, count, context);
        call(ep, Kind::Write, at(made, addr, key))
    }
}

/// # Safety
///
/// As for `write`.
pub(super) unsafe extern "C" fn writesgl(
    ep: *mut kfid_ep,
    sgl: *const scatterlist,
    desc: *mut *mut c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        let made = of_list(RawList::Sgl(sgl), desc, count, context);
        call(ep, Kind::Write, at(made, addr, key))
    }
}

/// # Safety
///
/// As for `write`.
pub(super) unsafe extern "C" fn writemsg(
    ep: *mut kfid_ep,
    msg: *const kfi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: `msg` is null or valid, and `ep` is open, by the requirements of this function.
    unsafe { by_msg(ep, msg, flags, Kind::Write) }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call.
pub(super) unsafe extern "C" fn inject(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    _dest_addr: kfi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    let (kvec, desc) = (buffer(buf, len), ptr::null_mut());
    let made = of_buffer(&kvec, &desc, CallFlags::Inject, None, ptr::null_mut());
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Write, at(made, addr, key)) }
}

/// # Safety
///
/// As for `write`.
pub(super) unsafe extern "C" fn writedata(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    desc: *mut c_void,
    data: u64,
    _dest_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let kvec = buffer(buf, len);
    let made = of_buffer(&kvec, &desc, CallFlags::Default, Some(data), context);
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Write, at(made, addr, key)) }
}

/// # Safety
///
/// As for [`inject`].
pub(super) unsafe extern "C" fn injectdata(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    _dest_addr: kfi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    let (kvec, desc) = (buffer(buf, len), ptr::null_mut());
    let made = of_buffer(&kvec, &desc, CallFlags::Inject, Some(data), ptr::null_mut());
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Write, at(made, addr, key)) }
}
