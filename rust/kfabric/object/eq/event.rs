// SPDX-License-Identifier: GPL-2.0

//! The entries of an event queue.

use crate::{
    object::info::InfoChain,
    prelude::*, //
};
use core::{
    mem::ManuallyDrop,
    ptr, //
};
use kfi_bindings::{
    kfi_eq_cm_entry,
    kfi_eq_entry,
    kfi_eq_err_entry,
    kfid, //
};

/// The longest structure that a consumer can write, in bytes.
pub(super) const ENTRY_MAX: usize = crate::support::num::index(kfi_bindings::KFI_EQ_ENTRY_MAX);

/// The private data of a peer.
pub(super) type PeerData = Option<Arc<KVec<u8>>>;

/// An event.
pub(super) struct EqEvent {
    pub(super) number: u32,
    body: Body,
}

enum Body {
    /// An event of the core.
    Entry(kfi_eq_entry),
    /// An event about a connection.
    Connection {
        head: kfi_eq_cm_entry,
        /// The info that `head` points to. A reader takes it over.
        info: InfoChain,
        data: PeerData,
    },
    /// An event that a consumer wrote.
    Written { len: usize, bytes: [u8; ENTRY_MAX] },
}

// SAFETY: The pointers are passed to the reader, and never dereferenced here.
unsafe impl Send for EqEvent {}

impl EqEvent {
    /// Creates an event of the core.
    pub(super) fn new(number: u32, fid: *mut kfid, context: *mut c_void, data: u64) -> Self {
        Self {
            number,
            body: Body::Entry(kfi_eq_entry { fid, context, data }),
        }
    }

    /// Creates an event about a connection. A connection request has an info for the reader.
    pub(super) fn connection(number: u32, fid: *mut kfid, info: InfoChain, data: PeerData) -> Self {
        let head = kfi_eq_cm_entry {
            fid,
            info: info.as_ptr(),
            data: Default::default(),
        };
        let body = Body::Connection { head, info, data };
        Self { number, body }
    }

    /// Returns whether the event is about this object.
    pub(super) fn is_about(&self, fid: *mut kfid) -> bool {
        match &self.body {
            Body::Entry(entry) => ptr::eq(entry.fid, fid),
            Body::Connection { head, .. } => ptr::eq(head.fid, fid),
            Body::Written { .. } => false,
        }
    }

    /// Returns the handle of the connection request in the event, if there is one.
    pub(super) fn request(&mut self) -> Option<*mut kfid> {
        match &mut self.body {
            Body::Connection { info, .. } => Some(info.fields_mut()?.handle),
            _ => None,
        }
    }

    /// Releases the info to the reader, who frees it.
    pub(super) fn given(self) {
        if let Body::Connection { info, .. } = self.body {
            let _readers = ManuallyDrop::new(info);
        }
    }

    /// Creates an event with a copy of a consumer's bytes. Returns `None` if `len` is 0 or more than
    /// [`ENTRY_MAX`].
    ///
    /// # Safety
    ///
    /// `buf` is valid for reads of `len` bytes.
    pub(super) unsafe fn written(number: u32, buf: *const u8, len: usize) -> Option<Self> {
        let mut bytes = [0; ENTRY_MAX];
        if len == 0 || len > bytes.len() {
            return None;
        }
        // SAFETY: `buf` is valid for reads of `len` bytes, and `bytes` has at least as many.
        unsafe { ptr::copy_nonoverlapping(buf, bytes.as_mut_ptr(), len) };
        let body = Body::Written { len, bytes };
        Some(Self { number, body })
    }

    /// Returns the address and the length of the C structure of the event.
    pub(super) fn bytes(&self) -> (*const u8, usize) {
        match &self.body {
            Body::Entry(entry) => (ptr::from_ref(entry).cast(), size_of_val(entry)),
            Body::Connection { head, .. } => (ptr::from_ref(head).cast(), size_of_val(head)),
            Body::Written { len, bytes } => (bytes.as_ptr(), *len),
        }
    }

    /// Returns the peer's data, which follows the structure.
    pub(super) fn more(&self) -> &[u8] {
        match &self.body {
            Body::Connection {
                data: Some(data), ..
            } => data,
            _ => &[],
        }
    }
}

/// An error event.
#[derive(Clone)]
pub(super) struct EqFailure {
    pub(super) fid: *mut kfid,
    pub(super) context: *mut c_void,
    /// The positive errno.
    pub(super) errno: c_int,
    pub(super) prov_errno: c_int,
    pub(super) data: PeerData,
}

// SAFETY: The pointers are passed to the reader, and never dereferenced here.
unsafe impl Send for EqFailure {}

impl EqFailure {
    /// Returns the C structure of the event. Its data stays valid while `self` or a clone exists.
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
