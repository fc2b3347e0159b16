// SPDX-License-Identifier: GPL-2.0

//! What a call says of the peer's memory.

use crate::{
    object::ep::posting::{
        call,
        Call,
        CallFlags,
        Kind,
        Remote, //
    },
    post::buffers::{
        Buffers,
        RawList, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use kfi_bindings::{
    kfi_msg_rma,
    kfid_ep, //
};

/// The peer's memory, as long as that at this side.
pub(super) const fn remote(address: u64, key: u64) -> Remote {
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
pub(super) unsafe fn by_msg(
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
