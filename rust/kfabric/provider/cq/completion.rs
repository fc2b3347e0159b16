// SPDX-License-Identifier: GPL-2.0

//! What there is to say of an operation that has ended.

use crate::support::errno::Errno;
use core::ptr;
use kernel::ffi::c_void;

/// A pointer of the consumer's, such as the context of an operation: opaque, never followed, and
/// given back bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context(*mut c_void);

// SAFETY: The pointer is handed through to the consumer, and not followed.
unsafe impl Send for Context {}
// SAFETY: As for `Send`; it never changes.
unsafe impl Sync for Context {}

impl Context {
    /// None, which the consumer gets as NULL.
    pub const NULL: Self = Self(ptr::null_mut());

    /// What the consumer gave.
    pub const fn new(given: *mut c_void) -> Self {
        Self(given)
    }

    /// What the consumer gets.
    pub const fn as_ptr(self) -> *mut c_void {
        self.0
    }
}

/// An operation that has ended: what the consumer reads of it, as far as the format of its queue
/// has room for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The context that was given with the operation.
    pub context: Context,
    /// Which kind of operation it was, and which of the other fields are valid.
    pub flags: u64,
    /// How many bytes were received.
    pub len: usize,
    /// Where they went, for a buffer that receives several messages.
    pub buf: Context,
    /// The peer's remote CQ data, with `KFI_REMOTE_CQ_DATA` in the flags.
    pub data: u64,
}

impl Completion {
    pub(super) const NONE: Self = Self {
        context: Context::NULL,
        flags: 0,
        len: 0,
        buf: Context::NULL,
        data: 0,
    };
}

/// An operation that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What there is to say of any operation.
    pub done: Completion,
    /// How many bytes of a message there was no room for.
    pub olen: usize,
    /// Why it failed.
    pub errno: Errno,
    /// The provider's own number for that. The core has words for those of `kfi_errno.h`, positive.
    pub prov_errno: i32,
}
