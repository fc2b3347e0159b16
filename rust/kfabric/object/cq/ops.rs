// SPDX-License-Identifier: GPL-2.0

//! The operations of a completion queue, as C calls them.

use super::{
    out::Out,
    CqObject,
    Waits, //
};
use crate::{
    object::queues::{
        answer,
        tell,
        timeout,
        Answer,
        CANT_WAIT, //
    },
    provider::cq::{
        Completion,
        Failure,
        Reading, //
    },
    support::{
        errno::Errno,
        refusal::{
            no_flags,
            Refusal, //
        },
        strings,
        table::Table, //
    }, //
};
use core::ptr;
use kernel::ffi::{
    c_char,
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_addr_t,
    kfi_cq_err_entry,
    kfi_ops_cq,
    kfid_cq, //
};

/// The operations of a completion queue.
pub(super) static OPS: Table<kfi_ops_cq> = Table(kfi_ops_cq {
    size: size_of::<kfi_ops_cq>(),
    read: Some(read),
    readfrom: Some(readfrom),
    readerr: Some(readerr),
    sread: Some(sread),
    sreadfrom: Some(sreadfrom),
    signal: Some(signal),
    strerror: Some(strerror),
});

/// The queue that C calls an operation on.
///
/// # Safety
///
/// `cq` is an open queue; the reference is not used after it was closed.
unsafe fn object<'a>(cq: *mut kfid_cq) -> &'a CqObject {
    // SAFETY: Our table is on our queues only, whose `kfid_cq` is the object's first field.
    unsafe { &*cq.cast::<CqObject>() }
}

impl Reading {
    /// Returns what C gets.
    fn answer(self) -> Answer {
        match self {
            Self::Done(count) => Ok(count),
            Self::Empty => Err(Errno::EAGAIN),
            Self::Failure => Err(Errno::EAVAIL),
            Self::Interrupted => Err(Errno::EINTR),
        }
    }
}

/// Puts completions where a reader wants them, one behind the other.
///
/// # Safety
///
/// There is room for as many as `out` says, and what this gives is not called more often.
unsafe fn putting(out: &Out) -> impl FnMut(&Completion) + use<'_> {
    let mut at = 0;
    move |done| {
        // SAFETY: There is room by the requirements of this function.
        unsafe { out.put(at, done) };
        at += 1;
    }
}

/// The `read` slot of a completion queue. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn read(cq: *mut kfid_cq, buf: *mut c_void, count: usize) -> isize {
    // SAFETY: By the requirements of this function; no addresses are asked for.
    unsafe { readfrom(cq, buf, count, ptr::null_mut()) }
}

/// The `readfrom` slot of a completion queue. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn readfrom(
    cq: *mut kfid_cq,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut kfi_addr_t,
) -> isize {
    // SAFETY: `cq` is an open queue by the requirements of this function.
    let cq = unsafe { object(cq) };
    let read = || {
        let out = Out::new(cq.format, buf, count, src_addr)?;
        // SAFETY: `buf` and `src_addr` have room for `count`, and no more are read.
        let put = unsafe { putting(&out) };
        Ok(cq.queue().read(out.count(), put).answer())
    };
    answer(read())
}

/// The `sread` slot of a completion queue. Sleeps.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn sread(
    cq: *mut kfid_cq,
    buf: *mut c_void,
    count: usize,
    cond: *const c_void,
    msecs: c_int,
) -> isize {
    // SAFETY: By the requirements of this function; no addresses are asked for.
    unsafe { sreadfrom(cq, buf, count, ptr::null_mut(), cond, msecs) }
}

/// The `sreadfrom` slot of a completion queue. Sleeps.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn sreadfrom(
    cq: *mut kfid_cq,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut kfi_addr_t,
    cond: *const c_void,
    msecs: c_int,
) -> isize {
    kernel::task::might_sleep();
    // SAFETY: `cq` is an open queue by the requirements of this function.
    let cq = unsafe { object(cq) };
    let read = || {
        let out = Out::new(cq.format, buf, count, src_addr)?;
        let threshold = match cq.waits.ok_or(CANT_WAIT)? {
            Waits::Any => 1,
            // SAFETY: It is null, or points to a threshold in a queue that was opened for them.
            Waits::Threshold => unsafe { cond.cast::<usize>().as_ref() }.map_or(1, |at| *at),
        };
        // SAFETY: `buf` and `src_addr` have room for `count`, and no more are read.
        let put = unsafe { putting(&out) };
        // Counted, so that the queue can't be closed under who waits.
        let _waiting = cq.waiters.count()?;
        let queue = cq.queue();
        let read = queue.wait_and_read(out.count(), threshold, timeout(msecs), put);
        Ok(read.answer())
    };
    answer(read())
}

/// Tells C of a failure.
///
/// # Safety
///
/// `entry` is valid.
unsafe fn put_failure(entry: *mut kfi_cq_err_entry, failure: &Failure) {
    // SAFETY: `entry` is valid by the requirements of this function.
    let (room, err_data) = unsafe { ((*entry).err_data_size, (*entry).err_data) };
    let done = &failure.done;
    let told = kfi_cq_err_entry {
        op_context: done.context.as_ptr(),
        flags: done.flags,
        len: done.len,
        buf: done.buf.as_ptr(),
        data: done.data,
        tag: 0,
        olen: failure.olen,
        err: -failure.errno.to_c(),
        prov_errno: failure.prov_errno,
        // Nothing is written there. Room of the reader's stays its own.
        err_data: match room {
            0 => ptr::null_mut(),
            _ => err_data,
        },
        err_data_size: 0,
    };
    // SAFETY: `entry` is valid by the requirements of this function.
    unsafe { entry.write(told) };
}

/// The `readerr` slot of a completion queue. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn readerr(cq: *mut kfid_cq, buf: *mut kfi_cq_err_entry, flags: u64) -> isize {
    // SAFETY: `cq` is an open queue by the requirements of this function.
    let cq = unsafe { object(cq) };
    let read = || {
        no_flags(flags)?;
        if buf.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"buffer is NULL"));
        }
        let Some(failure) = cq.queue().read_failure() else {
            return Ok(Err(Errno::EAGAIN));
        };
        // SAFETY: `buf` is valid by the requirements of this function, and not null.
        unsafe { put_failure(buf, &failure) };
        Ok(Ok(1))
    };
    answer(read())
}

/// The `signal` slot of a completion queue. Any context.
///
/// # Safety
///
/// `cq` is an open queue.
unsafe extern "C" fn signal(cq: *mut kfid_cq) -> c_int {
    // SAFETY: By the requirements of this function.
    let cq = unsafe { object(cq) };
    if cq.waits.is_none() {
        return CANT_WAIT.report();
    }
    cq.queue().signal();
    0
}

/// The `strerror` slot of a completion queue. Any context.
///
/// # Safety
///
/// As the C API demands: `cq` is an open queue, and `buf` is null or has room for `len` bytes.
unsafe extern "C" fn strerror(
    cq: *mut kfid_cq,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: By the requirements of this function.
    let domain = unsafe { object(cq) }.parent();
    let words = domain.provider().words(prov_errno);
    // SAFETY: By the requirements of this function.
    unsafe { tell(strings::words(words, prov_errno), buf, len) }
}
