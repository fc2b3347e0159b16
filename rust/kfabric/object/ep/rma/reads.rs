// SPDX-License-Identifier: GPL-2.0

//! Reading from a peer's memory.

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
pub(super) unsafe extern "C" fn read(
    ep: *mut kfid_ep,
    buf: *mut c_void,
    len: usize,
    desc: *mut c_void,
    _src_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let kvec = buffer(buf, len);
    let made = of_buffer(&kvec, &desc, CallFlags::Default, None, context);
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Read, at(made, addr, key)) }
}

/// # Safety
///
/// As for [`read`].
pub(super) unsafe extern "C" fn readv(
    ep: *mut kfid_ep,
    iov: *const kvec,
    desc: *mut *mut c_void,
    count: usize,
    _src_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        let made = of_list(RawList::Kvec(iov), desc, count, context);
        call(ep, Kind::Read, at(made, addr, key))
    }
}

/// # Safety
///
/// As for [`read`].
pub(super) unsafe extern "C" fn readbv(
    ep: *mut kfid_ep,
    biov: *const bio_vec,
    desc: *mut *mut c_void,
    count: usize,
    _src_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        let made = of_list(RawList::Bvec(biov), desc, count, context);
        call(ep, Kind::Read, at(made, addr, key))
    }
}

/// # Safety
///
/// As for [`read`].
pub(super) unsafe extern "C" fn readsgl(
    ep: *mut kfid_ep,
    sgl: *const scatterlist,
    desc: *mut *mut c_void,
    count: usize,
    _src_addr: kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        let made = of_list(RawList::Sgl(sgl), desc, count, context);
        call(ep, Kind::Read, at(made, addr, key))
    }
}

/// # Safety
///
/// As for [`read`].
pub(super) unsafe extern "C" fn readmsg(
    ep: *mut kfid_ep,
    msg: *const kfi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: `msg` is null or valid, and `ep` is open, by the requirements of this function.
    unsafe { by_msg(ep, msg, flags, Kind::Read) }
}
