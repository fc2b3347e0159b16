// SPDX-License-Identifier: GPL-2.0

//! What a call says of the peer's memory.

use crate::{
    object::ep::{
        args::of_fields,
        posting::{
            call,
            Call,
            Kind,
            Remote, //
        }, //
    },
    post::{
        buffers::RawList,
        remote::MAX_REMOTE, //
    },
    support::{
        c_ref::c_ref,
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::slice;
use kfi_bindings::{
    kfi_msg_rma,
    kfid_ep, //
};

/// A call on the peer's memory from an address on, as long as that at this side.
pub(super) fn at(
    made: Result<Call<'_>, Refusal>,
    address: u64,
    key: u64,
) -> Result<Call<'_>, Refusal> {
    made.map(|call| Call {
        remote: Remote::From { address, key },
        ..call
    })
}

/// A call on an access.
///
/// # Errors
///
/// - `EINVAL`: there is no rma_iov, or more than any endpoint takes.
///
/// # Safety
///
/// As the C API demands: `msg` is null or valid with all that it points to, for `'a`.
unsafe fn of_msg<'a>(msg: *const kfi_msg_rma, flags: u64) -> Result<Call<'a>, Refusal> {
    // SAFETY: `msg` is null, an error pointer, or valid for `'a`, by the requirements of this function.
    let msg = unsafe { c_ref(msg) }.ok_or(Refusal::NULL)?;
    if msg.rma_iov_count == 0 || msg.rma_iov_count > MAX_REMOTE {
        let refusal = Refusal::new(Errno::EINVAL, c"no rma_iov, or more than rma_iov_limit");
        return Err(refusal.value(widen(msg.rma_iov_count)));
    }
    if msg.rma_iov.is_null() {
        return Err(Refusal::NULL);
    }
    // SAFETY: By the requirements of this function; all members of the union are pointers.
    let (call, pieces) = unsafe {
        let list = RawList::of_type(msg.type_, msg.__bindgen_anon_1.msg_iov.cast())?;
        (
            of_fields(list, msg.desc, msg.iov_count, flags, msg.data, msg.context)?,
            slice::from_raw_parts(msg.rma_iov, msg.rma_iov_count),
        )
    };
    Ok(Call {
        remote: Remote::Pieces(pieces),
        ..call
    })
}

/// A call on an access, done on the endpoint that C gives.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, `msg` null or valid with all that it
/// points to.
pub(super) unsafe fn by_msg(
    ep: *mut kfid_ep,
    msg: *const kfi_msg_rma,
    flags: u64,
    kind: Kind,
) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { call(ep, kind, of_msg(msg, flags)) }
}
