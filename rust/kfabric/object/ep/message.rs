// SPDX-License-Identifier: GPL-2.0

//! Messages: the calls of `struct kfi_ops_msg`.
//!
//! All of them are for any context. The peer's address is that of the connection; what a call says of
//! it doesn't matter.

use super::{
    args::{
        buffer,
        of_buffer,
        of_fields,
        of_list, //
    },
    posting::{
        call,
        Call,
        CallFlags,
        Kind, //
    }, //
};
use crate::{
    post::buffers::RawList,
    support::{
        c_ref::c_ref,
        refusal::Refusal,
        table::Table, //
    }, //
};
use kernel::ffi::c_void;
use kfi_bindings::{
    bio_vec,
    kfi_addr_t,
    kfi_msg,
    kfi_ops_msg,
    kfid_ep,
    kvec,
    scatterlist, //
};

/// Messages.
pub(super) static MSG: Table<kfi_ops_msg> = Table(kfi_ops_msg {
    size: size_of::<kfi_ops_msg>(),
    recv: Some(recv),
    recvv: Some(recvv),
    recvbv: Some(recvbv),
    recvmsg: Some(recvmsg),
    send: Some(send),
    sendv: Some(sendv),
    sendbv: Some(sendbv),
    sendmsg: Some(sendmsg),
    inject: Some(inject),
    senddata: Some(senddata),
    injectdata: Some(injectdata),
    recvsgl: Some(recvsgl),
    sendsgl: Some(sendsgl),
});

/// A call on a message.
///
/// # Safety
///
/// As the C API demands: `msg` is null or valid with all that it points to, for `'a`.
unsafe fn of_msg<'a>(msg: *const kfi_msg, flags: u64) -> Result<Call<'a>, Refusal> {
    // SAFETY: `msg` is null, an error pointer, or valid for `'a`, by the requirements of this function.
    let msg = unsafe { c_ref(msg) }.ok_or(Refusal::NULL)?;
    // SAFETY: By the requirements of this function; all members of the union are pointers.
    unsafe {
        let list = RawList::of_type(msg.type_, msg.__bindgen_anon_1.msg_iov.cast())?;
        of_fields(list, msg.desc, msg.iov_count, flags, msg.data, msg.context)
    }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call; the memory stays until the
/// receive has ended.
unsafe extern "C" fn recv(
    ep: *mut kfid_ep,
    buf: *mut c_void,
    len: usize,
    desc: *mut c_void,
    _src_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    let kvec = buffer(buf, len);
    let made = of_buffer(&kvec, &desc, CallFlags::Default, None, context);
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Receive, made) }
}

/// # Safety
///
/// As for [`recv`].
unsafe extern "C" fn recvv(
    ep: *mut kfid_ep,
    iov: *const kvec,
    desc: *mut *mut c_void,
    count: usize,
    _src_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        call(
            ep,
            Kind::Receive,
            of_list(RawList::Kvec(iov), desc, count, context),
        )
    }
}

/// # Safety
///
/// As for [`recv`].
unsafe extern "C" fn recvbv(
    ep: *mut kfid_ep,
    biov: *const bio_vec,
    desc: *mut *mut c_void,
    count: usize,
    _src_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        call(
            ep,
            Kind::Receive,
            of_list(RawList::Bvec(biov), desc, count, context),
        )
    }
}

/// # Safety
///
/// As for [`recv`].
unsafe extern "C" fn recvsgl(
    ep: *mut kfid_ep,
    sgl: *const scatterlist,
    desc: *mut *mut c_void,
    count: usize,
    _src_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        call(
            ep,
            Kind::Receive,
            of_list(RawList::Sgl(sgl), desc, count, context),
        )
    }
}

/// # Safety
///
/// As for [`recv`].
unsafe extern "C" fn recvmsg(ep: *mut kfid_ep, msg: *const kfi_msg, flags: u64) -> isize {
    // SAFETY: `msg` is null or valid, and `ep` is open, by the requirements of this function.
    unsafe { call(ep, Kind::Receive, of_msg(msg, flags)) }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call; the memory stays until the send
/// has ended.
unsafe extern "C" fn send(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    desc: *mut c_void,
    _dest_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    let kvec = buffer(buf, len);
    let made = of_buffer(&kvec, &desc, CallFlags::Default, None, context);
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Send, made) }
}

/// # Safety
///
/// As for [`send`].
unsafe extern "C" fn sendv(
    ep: *mut kfid_ep,
    iov: *const kvec,
    desc: *mut *mut c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        call(
            ep,
            Kind::Send,
            of_list(RawList::Kvec(iov), desc, count, context),
        )
    }
}

/// # Safety
///
/// As for [`send`].
unsafe extern "C" fn sendbv(
    ep: *mut kfid_ep,
    biov: *const bio_vec,
    desc: *mut *mut c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        call(
            ep,
            Kind::Send,
            of_list(RawList::Bvec(biov), desc, count, context),
        )
    }
}

/// # Safety
///
/// As for [`send`].
unsafe extern "C" fn sendsgl(
    ep: *mut kfid_ep,
    sgl: *const scatterlist,
    desc: *mut *mut c_void,
    count: usize,
    _dest_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: The lists are valid, and `ep` is open, by the requirements of this function.
    unsafe {
        call(
            ep,
            Kind::Send,
            of_list(RawList::Sgl(sgl), desc, count, context),
        )
    }
}

/// # Safety
///
/// As for [`send`].
unsafe extern "C" fn sendmsg(ep: *mut kfid_ep, msg: *const kfi_msg, flags: u64) -> isize {
    // SAFETY: `msg` is null or valid, and `ep` is open, by the requirements of this function.
    unsafe { call(ep, Kind::Send, of_msg(msg, flags)) }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call.
unsafe extern "C" fn inject(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    _dest_addr: kfi_addr_t,
) -> isize {
    let (kvec, desc) = (buffer(buf, len), core::ptr::null_mut());
    let made = of_buffer(&kvec, &desc, CallFlags::Inject, None, core::ptr::null_mut());
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Send, made) }
}

/// # Safety
///
/// As for [`send`].
unsafe extern "C" fn senddata(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    desc: *mut c_void,
    data: u64,
    _dest_addr: kfi_addr_t,
    context: *mut c_void,
) -> isize {
    let kvec = buffer(buf, len);
    let made = of_buffer(&kvec, &desc, CallFlags::Default, Some(data), context);
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Send, made) }
}

/// # Safety
///
/// As for [`inject`].
unsafe extern "C" fn injectdata(
    ep: *mut kfid_ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    _dest_addr: kfi_addr_t,
) -> isize {
    let (kvec, desc) = (buffer(buf, len), core::ptr::null_mut());
    let made = of_buffer(
        &kvec,
        &desc,
        CallFlags::Inject,
        Some(data),
        core::ptr::null_mut(),
    );
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Send, made) }
}
