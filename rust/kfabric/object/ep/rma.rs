// SPDX-License-Identifier: GPL-2.0

//! Access to a peer's memory: the calls of `struct kfi_ops_rma`.
//!
//! All of them are for any context. The peer is that of the connection; what a call says of its address
//! doesn't matter.

use super::{
    message::{
        buffer,
        of_buffer,
        of_list, //
    },
    posting::{
        call,
        Call,
        CallFlags,
        Kind,
        Remote, //
    }, //
};
use crate::{
    post::buffers::{
        Buffers,
        RawList, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal,
        table::Table, //
    }, //
};
use core::ptr;
use kernel::ffi::c_void;
use kfi_bindings::{
    bio_vec,
    kfi_addr_t,
    kfi_msg_rma,
    kfi_ops_rma,
    kfid_ep,
    kvec,
    scatterlist, //
};

/// RMA.
pub(super) static RMA: Table<kfi_ops_rma> = Table(kfi_ops_rma {
    size: size_of::<kfi_ops_rma>(),
    read: Some(read),
    readv: Some(readv),
    readbv: Some(readbv),
    readmsg: Some(readmsg),
    write: Some(write),
    writev: Some(writev),
    writebv: Some(writebv),
    writemsg: Some(writemsg),
    inject: Some(inject),
    writedata: Some(writedata),
    injectdata: Some(injectdata),
    readsgl: Some(readsgl),
    writesgl: Some(writesgl),
});

/// The peer's memory, as long as that at this side.
const fn remote(address: u64, key: u64) -> Remote {
    Remote {
        address,
        key,
        len: None,
    }
}

/// The peer's memory of an access, which is one piece.
///
/// # Errors
///
/// - `EINVAL`: there is none, or more than rma_iov_limit.
///
/// # Safety
///
/// As the C API demands: `msg` is null or valid with all that it points to.
unsafe fn remote_of(msg: *const kfi_msg_rma) -> Result<Remote, Refusal> {
    // SAFETY: By the requirements of this function.
    let msg = unsafe { msg.as_ref() }.ok_or(Refusal::NULL)?;
    if msg.rma_iov_count != 1 {
        let refusal = Refusal::new(Errno::EINVAL, c"not as many rma_iov as rma_iov_limit");
        return Err(refusal.value(widen(msg.rma_iov_count)));
    }
    // SAFETY: Null or valid, by the requirements of this function.
    let iov = unsafe { msg.rma_iov.as_ref() }.ok_or(Refusal::NULL)?;
    Ok(Remote {
        address: iov.addr,
        key: iov.key,
        len: Some(widen(iov.len)),
    })
}

/// A call on an access.
///
/// # Safety
///
/// As the C API demands: `msg` is null or valid with all that it points to, for `'a`.
unsafe fn of_msg<'a>(msg: *const kfi_msg_rma, flags: u64) -> Result<Call<'a>, Refusal> {
    // SAFETY: By the requirements of this function.
    let msg = unsafe { msg.as_ref() }.ok_or(Refusal::NULL)?;
    // SAFETY: All members of the union are pointers.
    let list = RawList::of_type(msg.type_, unsafe { msg.__bindgen_anon_1.msg_iov }.cast())?;
    Ok(Call {
        // SAFETY: By the requirements of this function.
        buffers: unsafe { Buffers::list(list, msg.desc, msg.iov_count) }?,
        flags: CallFlags::These(flags),
        data: Some(msg.data),
        context: msg.context,
    })
}

/// A call on an access, done on the endpoint that C gives.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, `msg` null or valid with all that it
/// points to.
unsafe fn by_msg(
    ep: *mut kfid_ep,
    msg: *const kfi_msg_rma,
    flags: u64,
    kind: fn(Remote) -> Kind,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe {
        match remote_of(msg) {
            Ok(remote) => call(ep, kind(remote), of_msg(msg, flags)),
            Err(refusal) => call(ep, kind(self::remote(0, 0)), Err(refusal)),
        }
    }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call; the memory stays until the access
/// has ended.
unsafe extern "C" fn read(
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
    unsafe { call(ep, Kind::Read(remote(addr, key)), made) }
}

/// # Safety
///
/// As for [`read`].
unsafe extern "C" fn readv(
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
        call(ep, Kind::Read(remote(addr, key)), made)
    }
}

/// # Safety
///
/// As for [`read`].
unsafe extern "C" fn readbv(
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
        call(ep, Kind::Read(remote(addr, key)), made)
    }
}

/// # Safety
///
/// As for [`read`].
unsafe extern "C" fn readsgl(
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
        call(ep, Kind::Read(remote(addr, key)), made)
    }
}

/// # Safety
///
/// As for [`read`].
unsafe extern "C" fn readmsg(ep: *mut kfid_ep, msg: *const kfi_msg_rma, flags: u64) -> isize {
    // SAFETY: `msg` is null or valid, and `ep` is open, by the requirements of this function.
    unsafe { by_msg(ep, msg, flags, Kind::Read) }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call; the memory stays until the access
/// has ended.
unsafe extern "C" fn write(
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
    unsafe { call(ep, Kind::Write(remote(addr, key)), made) }
}

/// # Safety
///
/// As for `write`.
unsafe extern "C" fn writev(
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
        call(ep, Kind::Write(remote(addr, key)), made)
    }
}

/// # Safety
///
/// As for `write`.
unsafe extern "C" fn writebv(
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
        call(ep, Kind::Write(remote(addr, key)), made)
    }
}

/// # Safety
///
/// As for `write`.
unsafe extern "C" fn writesgl(
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
        call(ep, Kind::Write(remote(addr, key)), made)
    }
}

/// # Safety
///
/// As for `write`.
unsafe extern "C" fn writemsg(ep: *mut kfid_ep, msg: *const kfi_msg_rma, flags: u64) -> isize {
    // SAFETY: `msg` is null or valid, and `ep` is open, by the requirements of this function.
    unsafe { by_msg(ep, msg, flags, Kind::Write) }
}

/// # Safety
///
/// As the C API demands: each pointer is null or valid for the call.
unsafe extern "C" fn inject(
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
    unsafe { call(ep, Kind::Write(remote(addr, key)), made) }
}

/// # Safety
///
/// As for `write`.
unsafe extern "C" fn writedata(
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
    unsafe { call(ep, Kind::Write(remote(addr, key)), made) }
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
    addr: u64,
    key: u64,
) -> isize {
    let (kvec, desc) = (buffer(buf, len), ptr::null_mut());
    let made = of_buffer(&kvec, &desc, CallFlags::Inject, Some(data), ptr::null_mut());
    // SAFETY: `ep` is an open endpoint by the requirements of this function.
    unsafe { call(ep, Kind::Write(remote(addr, key)), made) }
}
