// SPDX-License-Identifier: GPL-2.0

//! What the tests of completion queues complete.

use crate::{
    consumer::*,
    object::cq::CqObject,
    provider::cq::{
        self,
        Context,
        Place, //
    }, //
};
use core::ptr::without_provenance_mut as addr;
use kernel::prelude::*;
use kfi_bindings::KFI_REMOTE_CQ_DATA;

/// The core's side of a queue.
pub(super) fn core_side(queue: &CompletionQueue) -> Result<&CqObject> {
    // SAFETY: The queue is open while there is a reference to it.
    Ok(unsafe { CqObject::from_fid(queue.as_raw().cast()) }?)
}

/// A place in it.
pub(super) fn place(queue: &CompletionQueue) -> Result<Place> {
    core_side(queue)?.queue().reserve().ok_or(EAGAIN)
}

/// Something of this number has ended well.
pub(super) fn done(number: usize) -> cq::Completion {
    cq::Completion {
        context: Context::new(addr(number)),
        flags: 0x1_0000_0000 | u64::from(KFI_REMOTE_CQ_DATA),
        len: number + 1,
        buf: Context::new(addr(number + 2)),
        data: 0x3333_4444_5555_6666,
    }
}

/// Something of this number has failed.
pub(super) fn failure(number: usize) -> cq::Failure {
    cq::Failure {
        done: done(number),
        olen: number + 3,
        errno: Errno::EIO,
        prov_errno: -7,
    }
}
