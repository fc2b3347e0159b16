// SPDX-License-Identifier: GPL-2.0

//! From the arguments that calls of several tables have to what is posted.

use super::posting::{
    Call,
    CallFlags,
    Remote, //
};
use crate::{
    post::buffers::{
        Buffers,
        RawList, //
    },
    support::refusal::Refusal, //
};
use kernel::ffi::c_void;
use kfi_bindings::kvec;

/// One buffer, as a list.
pub(super) const fn buffer(buf: *const c_void, len: usize) -> kvec {
    kvec {
        iov_base: buf.cast_mut(),
        iov_len: len,
    }
}

/// A call without flags, on a list.
///
/// # Safety
///
/// As [`Buffers::list`].
pub(super) unsafe fn of_list<'a>(
    list: RawList,
    descs: *mut *mut c_void,
    count: usize,
    context: *mut c_void,
) -> Result<Call<'a>, Refusal> {
    Ok(Call {
        // SAFETY: By the requirements of this function.
        buffers: unsafe { Buffers::list(list, descs, count) }?,
        remote: Remote::Nowhere,
        flags: CallFlags::Default,
        data: None,
        context,
    })
}

/// A call on one buffer.
pub(super) fn of_buffer<'a>(
    kvec: &'a kvec,
    desc: &'a *mut c_void,
    flags: CallFlags,
    data: Option<u64>,
    context: *mut c_void,
) -> Result<Call<'a>, Refusal> {
    Ok(Call {
        buffers: Buffers::one(kvec, desc)?,
        remote: Remote::Nowhere,
        flags,
        data,
        context,
    })
}

/// A call that a structure describes, by what all of them have.
///
/// # Safety
///
/// As [`Buffers::list`].
pub(super) unsafe fn of_fields<'a>(
    list: RawList,
    descs: *mut *mut c_void,
    count: usize,
    flags: u64,
    data: u64,
    context: *mut c_void,
) -> Result<Call<'a>, Refusal> {
    Ok(Call {
        // SAFETY: By the requirements of this function.
        buffers: unsafe { Buffers::list(list, descs, count) }?,
        remote: Remote::Nowhere,
        flags: CallFlags::These(flags),
        data: Some(data),
        context,
    })
}
