// SPDX-License-Identifier: GPL-2.0

//! Events of a connection.

use super::conn_param::private_data;
use crate::prelude::*;
use rdma_bindings as b;

/// A handler for the events of a connection.
pub trait Events: Send + Sync + 'static {
    /// Handles an event.
    ///
    /// # Context
    ///
    /// Process context, one event at a time, with the lock of the connection. The connection
    /// manager waits for the handler, for some events on behalf of the whole machine. The handler
    /// may sleep for a lock or for memory. It must not
    ///
    /// - wait for a peer, for a user or for another event;
    /// - drop a connection, a [`Listener`](super::Listener), an [`Incoming`](super::Incoming) or a
    ///   [`Resolved`](super::Resolved), nor disconnect: they wait for the handler. Use a workqueue
    ///   for that.
    fn event(&self, event: Event<'_>);
}

/// An event of a connection.
///
/// A connection has at most one [`Event::Established`], and at most one event that ends it. No
/// event follows the end. After the end the endpoint is in error, and its requests are flushed.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is established. On the accepting side a message of the peer may arrive
    /// earlier.
    Established(Established<'a>),
    /// The path to the peer may have changed. The connection goes on. If the peer is unreachable,
    /// requests fail.
    PathChanged,
    /// End: the peer rejected the request.
    Rejected(Rejected<'a>),
    /// End: the connection could not be established.
    Failed {
        /// The step that failed.
        step: Step,
        /// The cause. `ETIMEDOUT` if the time limit ended, `EXDEV` if another device reaches the
        /// peer.
        error: Error,
    },
    /// End: requests were in flight, and none completed within the limit.
    Stalled,
    /// End: the peer or this side disconnected.
    Disconnected,
    /// End: the device is being removed. The owner must drop the connection soon, because the
    /// removal waits.
    DeviceRemoval,
}

/// Parameters of the peer's answer.
#[derive(Debug)]
pub struct Established<'a> {
    /// Private data, padded. Empty on the accepting side.
    pub private_data: &'a [u8],
    /// Number of the peer's reads and atomic operations that this side serves at once. On the
    /// accepting side it was settled before.
    pub responder_resources: u8,
    /// Number of reads and atomic operations that the peer serves at once.
    pub initiator_depth: u8,
}

impl<'a> Established<'a> {
    /// Returns the parameters of an event. They are zero in events without connection parameters.
    pub(super) fn of(event: &'a b::rdma_cm_event) -> Self {
        // SAFETY: `conn` is the member of connection events, and all of its bytes are zero in other
        // events.
        let conn = unsafe { event.param.conn.as_ref() };
        Self {
            // SAFETY: `private_data` is null or points to `private_data_len` bytes that are valid
            // as long as `event`.
            private_data: unsafe { private_data(conn.private_data, conn.private_data_len) },
            responder_resources: conn.responder_resources,
            initiator_depth: conn.initiator_depth,
        }
    }
}

/// Parameters of the peer's rejection.
#[derive(Debug)]
pub struct Rejected<'a> {
    /// The reason in the encoding of the wire: 28 if the peer's consumer rejected, 8 without a
    /// listener.
    pub reason: i32,
    /// Private data, padded.
    pub private_data: &'a [u8],
}

/// The states of a connection, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// Resolves the peer's address, and the device that leads there.
    Address,
    /// Resolves the route.
    Route,
    /// Requests the connection, or accepts it.
    Request,
    /// The connection is established.
    Established,
    /// The connection has ended.
    Ended,
}

impl Step {
    /// Returns the step with this number.
    pub(super) const fn from_raw(step: u32) -> Self {
        match step {
            0 => Self::Address,
            1 => Self::Route,
            2 => Self::Request,
            3 => Self::Established,
            _ => Self::Ended,
        }
    }
}

/// Reason of a rejection by the peer's consumer.
pub const REJECTED_BY_CONSUMER: i32 = 28;
/// Reason of a rejection without a listener.
pub const REJECTED_NO_LISTENER: i32 = 8;

/// Returns the text for the reason of a rejection. Over iWARP the reason is an errno, which has no
/// text here. Any context.
pub fn rejection(reason: i32) -> &'static CStr {
    // SAFETY: `ibcm_reject_msg` accepts every value, and returns a static string.
    unsafe { CStr::from_char_ptr(b::ibcm_reject_msg(reason)) }
}
