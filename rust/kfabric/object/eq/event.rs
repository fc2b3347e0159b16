// SPDX-License-Identifier: GPL-2.0

//! What an event queue holds.

use core::ptr;
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_eq_entry,
    kfi_eq_err_entry,
    kfid, //
};

/// The longest structure that a consumer can write, in bytes.
pub(super) const ENTRY_MAX: usize = crate::support::num::index(kfi_bindings::KFI_EQ_ENTRY_MAX);

/// An event.
pub(super) struct Event {
    pub(super) number: u32,
    body: Body,
}

enum Body {
    /// The core's own.
    Entry(kfi_eq_entry),
    /// Bytes of a consumer's.
    Written { len: usize, bytes: [u8; ENTRY_MAX] },
}

// SAFETY: The pointers in it are handed through to the reader, and not followed.
unsafe impl Send for Event {}

impl Event {
    /// An event of the core's.
    pub(super) fn new(number: u32, fid: *mut kfid, context: *mut c_void, data: u64) -> Self {
        Self {
            number,
            body: Body::Entry(kfi_eq_entry { fid, context, data }),
        }
    }

    /// An event with a copy of a consumer's bytes; `None` if they are none, or too many.
    ///
    /// # Safety
    ///
    /// `buf` is valid for reading `len` bytes.
    pub(super) unsafe fn written(number: u32, buf: *const u8, len: usize) -> Option<Self> {
        let mut bytes = [0; ENTRY_MAX];
        if len == 0 || len > bytes.len() {
            return None;
        }
        // SAFETY: By the requirements of this function; there is room for them as just checked.
        unsafe { ptr::copy_nonoverlapping(buf, bytes.as_mut_ptr(), len) };
        let body = Body::Written { len, bytes };
        Some(Self { number, body })
    }

    /// The event's structure.
    pub(super) fn bytes(&self) -> (*const u8, usize) {
        match &self.body {
            Body::Entry(entry) => (ptr::from_ref(entry).cast(), size_of_val(entry)),
            Body::Written { len, bytes } => (bytes.as_ptr(), *len),
        }
    }
}

/// An operation that failed.
#[derive(Clone, Copy)]
pub(super) struct Failure {
    pub(super) fid: *mut kfid,
    pub(super) context: *mut c_void,
    /// Positive.
    pub(super) errno: c_int,
}

// SAFETY: The pointers in it are handed through to the reader, and not followed.
unsafe impl Send for Failure {}

impl Failure {
    /// The entry that a reader gets.
    pub(super) fn entry(&self) -> kfi_eq_err_entry {
        kfi_eq_err_entry {
            fid: self.fid,
            context: self.context,
            err: self.errno,
            prov_errno: self.errno,
            ..pin_init::zeroed()
        }
    }
}
