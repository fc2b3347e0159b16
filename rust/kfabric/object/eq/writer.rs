// SPDX-License-Identifier: GPL-2.0

//! Putting events about one object into a queue.

use super::{
    event::{
        Event,
        Failure,
        PeerData, //
    },
    queue::Queue, //
};
use crate::{
    object::info::Info,
    support::errno::Errno, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::kfid;

/// Puts events about the connections of one object into a queue.
///
/// It may outlive queue and object, of which it only has the address.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    fid: *mut kfid,
    context: *mut c_void,
}

// SAFETY: The pointers are handed through to the reader, and not followed.
unsafe impl Send for Writer {}
// SAFETY: As for sending; the queue has its lock.
unsafe impl Sync for Writer {}

impl Writer {
    pub(super) fn new(queue: Arc<Queue>, fid: *mut kfid, context: *mut c_void) -> Self {
        Self {
            queue,
            fid,
            context,
        }
    }

    /// Puts in an event about a connection, with an info for the reader if it is a request for one,
    /// and what the peer has sent. If the queue is full it is lost, and the reader will know. May sleep.
    pub(crate) fn connection(&self, number: u32, info: Info, data: &[u8]) {
        let event = Event::connection(number, self.fid, info, copy(data));
        Queue::push(&self.queue, event);
    }

    /// As [`connection`](Self::connection), but gives `false` if the queue is full: then there is no
    /// event, and the info is freed. May sleep.
    pub(crate) fn try_connection(&self, number: u32, info: Info, data: &[u8]) -> bool {
        let event = Event::connection(number, self.fid, info, copy(data));
        Queue::try_push(&self.queue, event)
    }

    /// Puts in that there is no connection, and why, with what the peer has sent. If the queue is full
    /// it is lost, and the reader will know. May sleep.
    pub(crate) fn fail(&self, errno: Errno, prov_errno: c_int, data: &[u8]) {
        let failure = Failure {
            fid: self.fid,
            context: self.context,
            errno: -errno.to_c(),
            prov_errno,
            data: copy(data),
        };
        Queue::push_failure(&self.queue, failure);
    }
}

/// A copy of what a peer has sent; nothing if there is no memory for it, which is told as if the peer
/// had sent nothing.
fn copy(data: &[u8]) -> PeerData {
    if data.is_empty() {
        return None;
    }
    let mut copy = KVec::new();
    copy.extend_from_slice(data, GFP_KERNEL).ok()?;
    Arc::new(copy, GFP_KERNEL).ok()
}
