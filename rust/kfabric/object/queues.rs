// SPDX-License-Identifier: GPL-2.0

//! What calls on event queues, completion queues and counters have in common.

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use core::ptr;
use kernel::{
    ffi::{
        c_char,
        c_int, //
    },
    str::{
        CStr,
        CStrExt, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    }, //
};
use kfi_bindings::{
    kfi_wait_obj,
    kfi_wait_obj_KFI_WAIT_NONE as WAIT_NONE,
    kfi_wait_obj_KFI_WAIT_QUEUE as WAIT_QUEUE,
    kfi_wait_obj_KFI_WAIT_SET as WAIT_SET,
    kfi_wait_obj_KFI_WAIT_UNSPEC as WAIT_UNSPEC, //
};

/// Whether something with this wait object is going to be waited for.
///
/// # Errors
///
/// - `ENOSYS`: it is a wait set.
/// - `EINVAL`: there is no such object.
pub(super) fn can_wait(object: kfi_wait_obj) -> Result<bool, Refusal> {
    match object {
        WAIT_NONE => Ok(false),
        WAIT_UNSPEC | WAIT_QUEUE => Ok(true),
        WAIT_SET => Err(Refusal::new(Errno::ENOSYS, c"there are no wait sets")),
        other => Err(Refusal::new(Errno::EINVAL, c"unknown wait object").value(u64::from(other))),
    }
}

/// The refusal to wait for what can't be waited for.
pub(super) const CANT_WAIT: Refusal = Refusal::new(Errno::ENOSYS, c"opened without a wait object");

/// How long to wait for that many milliseconds; a negative number is for ever.
pub(super) fn timeout(msecs: c_int) -> Option<Jiffies> {
    u32::try_from(msecs).ok().map(msecs_to_jiffies)
}

/// How many bytes or entries were read or written, or the error number that says why there were
/// none, which is no refusal.
pub(super) type Answer = Result<usize, Errno>;

/// Returns what C gets of a call that reads or writes; reports a refusal.
pub(super) fn answer(result: Result<Answer, Refusal>) -> isize {
    let errno = match result {
        Ok(Ok(len)) => return isize::try_from(len).unwrap_or(isize::MAX),
        Ok(Err(errno)) => errno.to_c(),
        Err(refusal) => refusal.report(),
    };
    isize::try_from(errno).unwrap_or(isize::MIN)
}

/// What the `strerror` slot of a queue does with the text that it has found. Any context.
///
/// # Safety
///
/// As the C API demands: `buf` is null or has room for `len` bytes.
pub(super) unsafe fn tell(text: &'static CStr, buf: *mut c_char, len: usize) -> *const c_char {
    if !buf.is_null() && len > 0 {
        let bytes = text.to_bytes();
        let fits = bytes.len().min(len - 1);
        // SAFETY: `buf` has room for `len` bytes by the requirements of this function.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), buf.cast(), fits);
            buf.add(fits).write(0);
        }
    }
    text.as_char_ptr()
}
