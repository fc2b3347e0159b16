// SPDX-License-Identifier: GPL-2.0

//! What an event queue holds.

use crate::object::info::Info;
use core::{
    mem::ManuallyDrop,
    ptr, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_eq_cm_entry,
    kfi_eq_entry,
    kfi_eq_err_entry,
    kfid, //
};

/// The longest structure that a consumer can write, in bytes.
pub(super) const ENTRY_MAX: usize = crate::support::num::index(kfi_bindings::KFI_EQ_ENTRY_MAX);

/// What a peer has sent with an answer or a request.
pub(super) type PeerData = Option<Arc<KVec<u8>>>;

/// An event.
pub(super) struct Event {
    pub(super) number: u32,
    body: Body,
}

enum Body {
    /// The core's own.
    Entry(kfi_eq_entry),
    /// About a connection.
    Connection {
        head: kfi_eq_cm_entry,
        /// What `head` points to, until a reader has it.
        info: Info,
        data: PeerData,
    },
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

    /// An event about a connection, with an info for the reader if it is a request for one.
    pub(super) fn connection(number: u32, fid: *mut kfid, info: Info, data: PeerData) -> Self {
        let head = kfi_eq_cm_entry {
            fid,
            info: info.as_ptr(),
            data: Default::default(),
        };
        let body = Body::Connection { head, info, data };
        Self { number, body }
    }

    /// Is it about this object?
    pub(super) fn is_about(&self, fid: *mut kfid) -> bool {
        match &self.body {
            Body::Entry(entry) => ptr::eq(entry.fid, fid),
            Body::Connection { head, .. } => ptr::eq(head.fid, fid),
            Body::Written { .. } => false,
        }
    }

    /// Returns the handle of the connection request that it tells of, if it does.
    pub(super) fn request(&mut self) -> Option<*mut kfid> {
        match &mut self.body {
            Body::Connection { info, .. } => Some(info.fields_mut()?.handle),
            _ => None,
        }
    }

    /// A reader has it now, and what it points to.
    pub(super) fn given(self) {
        if let Body::Connection { info, .. } = self.body {
            let _readers = ManuallyDrop::new(info);
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
            Body::Connection { head, .. } => (ptr::from_ref(head).cast(), size_of_val(head)),
            Body::Written { len, bytes } => (bytes.as_ptr(), *len),
        }
    }

    /// What follows the structure, as far as there is room.
    pub(super) fn more(&self) -> &[u8] {
        match &self.body {
            Body::Connection {
                data: Some(data), ..
            } => data,
            _ => &[],
        }
    }
}

/// An operation that failed.
#[derive(Clone)]
pub(super) struct Failure {
    pub(super) fid: *mut kfid,
    pub(super) context: *mut c_void,
    /// Positive.
    pub(super) errno: c_int,
    pub(super) prov_errno: c_int,
    pub(super) data: PeerData,
}

// SAFETY: The pointers in it are handed through to the reader, and not followed.
unsafe impl Send for Failure {}

impl Failure {
    /// The entry that a reader gets. What it points to is there as long as `self`, or a clone.
    pub(super) fn entry(&self) -> kfi_eq_err_entry {
        let mut entry = kfi_eq_err_entry {
            fid: self.fid,
            context: self.context,
            err: self.errno,
            prov_errno: self.prov_errno,
            ..pin_init::zeroed()
        };
        if let Some(data) = &self.data {
            entry.err_data = data.as_ptr().cast_mut().cast();
            entry.err_data_size = data.len();
        }
        entry
    }
}
