// SPDX-License-Identifier: GPL-2.0

//! The common parts of event queues, completion queues and counters.

use super::prelude::*;
use kernel::time::msecs_to_jiffies;

/// Returns whether the consumer can wait for an object with this wait object. Any context.
///
/// # Errors
///
/// - `ENOSYS`: the wait object is a wait set.
/// - `EINVAL`: the wait object is unknown.
pub(super) fn can_wait(object: c::kfi_wait_obj) -> Result<bool, Refusal> {
    match object {
        c::kfi_wait_obj_KFI_WAIT_NONE => Ok(false),
        c::kfi_wait_obj_KFI_WAIT_UNSPEC | c::kfi_wait_obj_KFI_WAIT_QUEUE => Ok(true),
        c::kfi_wait_obj_KFI_WAIT_SET => Err(Refusal::new(Errno::ENOSYS, c"there are no wait sets")),
        other => Err(Refusal::new(Errno::EINVAL, c"unknown wait object").value(u64::from(other))),
    }
}

/// The refusal to wait for an object that was opened without a wait object.
pub(super) const CANT_WAIT: Refusal = Refusal::new(Errno::ENOSYS, c"opened without a wait object");

/// Returns a timeout in jiffies from milliseconds. A negative number means no timeout.
pub(super) fn timeout(msecs: c_int) -> Option<Jiffies> {
    u32::try_from(msecs).ok().map(msecs_to_jiffies)
}

/// The number of bytes or entries that were read or written, or an errno that is not reported as a
/// refusal.
pub(super) type ReadResult = Result<usize, Errno>;

/// Calls `f`, which reads from a queue or writes to it. Reports a refusal of the call of this name, and returns the
/// return value for C.
///
/// # Safety
///
/// `queue` must be an open queue of this core.
pub(super) unsafe fn call<T: Object>(
    queue: *mut T::C,
    call: &CStr,
    f: impl FnOnce(&Obj<T>) -> Result<ReadResult, Refusal>,
) -> isize {
    // SAFETY: `queue` is an open queue of this core.
    let queue = unsafe { Obj::from_c(queue) };
    let errno = match f(queue) {
        Ok(Ok(len)) => return isize::try_from(len).unwrap_or(isize::MAX),
        Ok(Err(errno)) => errno.to_c(),
        Err(refusal) => queue.refuse(call, refusal),
    };
    signed_size(errno)
}

/// An object whose provider has texts for its error numbers.
pub(super) trait Words {
    /// Returns the text of a provider's error number. Any context.
    fn words(&self, prov_errno: c_int) -> Option<&'static CStr>;
}

/// Returns the text of a provider's error number: `kfi_cq_strerror()` and `kfi_eq_strerror()`. Any
/// context.
///
/// # Safety
///
/// - `queue` must be an open queue of this core.
/// - `buf` must be null or valid for writes of `len` bytes.
pub(super) unsafe extern "C" fn strerror<T: Child<Parent: Words>>(
    queue: *mut T::C,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: `queue` is an open queue of this core.
    let queue = unsafe { Obj::<T>::from_c(queue) };
    let text = strings::words(queue.parent().words(prov_errno), prov_errno);
    if !buf.is_null() && len > 0 {
        let bytes = text.to_bytes();
        let fits = bytes.len().min(len - 1);
        // SAFETY: `buf` is valid for writes of `len` bytes, and `fits` is less than `len`.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), buf.cast(), fits);
            buf.add(fits).write(0);
        }
    }
    text.as_char_ptr()
}

/// Most entries of a queue: they take some MiB.
const SIZE_MAX: usize = 1 << 16;

/// Returns the number of entries of a new queue, or `default` if the consumer requests 0. Any context.
///
/// # Errors
///
/// - `EINVAL`: more than a queue can hold; `why` says so.
pub(super) fn size(requested: usize, default: usize, why: &'static CStr) -> Result<usize, Refusal> {
    match requested {
        0 => Ok(default),
        size if size <= SIZE_MAX => Ok(size),
        size => Err(Refusal::new(Errno::EINVAL, why).value(widen(size))),
    }
}

/// Checks whether a queue can be closed, and keeps later waiters out. Process context.
///
/// # Errors
///
/// - `EOPBADSTATE`: the handler of the queue is the caller. A close would wait for the handler.
/// - `EBUSY`: a thread waits for the queue; `why` says so.
pub(super) fn close(
    in_handler: bool,
    waiters: &Children,
    why: &'static CStr,
) -> Result<(), Refusal> {
    if in_handler {
        let refusal = Refusal::new(Errno::EOPBADSTATE, c"closed by its own handler");
        return Err(refusal);
    }
    waiters.close().map_err(|errno| Refusal::new(errno, why))
}

/// A consumer's handler and its arguments.
///
/// # Invariants
///
/// The consumer permits to call `call` with `queue` and `context` in any thread until the queue is closed.
pub(super) struct Handler<C> {
    call: unsafe extern "C" fn(*mut C, *mut c_void),
    queue: *mut C,
    context: *mut c_void,
}

// SAFETY: The pointers are only passed to `call`, which any thread may call by the invariant.
unsafe impl<C> Send for Handler<C> {}
// SAFETY: The pointers are only passed to `call`, which several threads may call at once by the invariant.
unsafe impl<C> Sync for Handler<C> {}

impl<C> Handler<C> {
    /// Creates a handler. Any context.
    ///
    /// # Safety
    ///
    /// Any thread may call `call` with `queue` and `context` until the queue is closed.
    pub(super) unsafe fn new(
        call: unsafe extern "C" fn(*mut C, *mut c_void),
        queue: *mut C,
        context: *mut c_void,
    ) -> Self {
        // INVARIANT: Any thread may call `call` with these arguments until the queue is closed.
        Self {
            call,
            queue,
            context,
        }
    }

    /// Calls the handler. Context: that of the handler.
    ///
    /// # Safety
    ///
    /// The queue is open, and closing it waits for this call.
    pub(super) unsafe fn call(&self) {
        // SAFETY: The queue is open, so the consumer permits the call by the invariant.
        unsafe { (self.call)(self.queue, self.context) };
    }
}
