// SPDX-License-Identifier: GPL-2.0

//! What becomes of a connection.

use super::conn_param::private_data;
use kernel::prelude::*;
use rdma_bindings as b;

/// Who wants to know what becomes of a connection.
pub trait Events: Send + Sync + 'static {
    /// Something has happened to the connection.
    ///
    /// In process context, one at a time, with the connection's lock: the connection manager waits,
    /// which for some events has one task for the whole machine. So this may sleep for a lock or
    /// for memory, but must not wait for a peer, for a user, or for another event. It must not drop
    /// this connection or another, a
    /// [`Listener`](super::Listener), an [`Incoming`](super::Incoming), or what is resolved, nor
    /// disconnect: all these wait for this to return. Have a workqueue do it.
    fn event(&self, event: Event<'_>);
}

/// Something that has happened to a connection.
///
/// There is one [`Event::Established`] at most, and one at most of those that are its end, after
/// which there is none. At the end its endpoint is in error, and all that was posted there gets
/// flushed.
#[derive(Debug)]
pub enum Event<'a> {
    /// It is there: what is posted goes to the peer. On the accepting side a message of the peer
    /// can have come before.
    Established(Established<'a>),
    /// The way to the peer may have changed. This is no end: if the peer can't be reached any more,
    /// requests fail.
    PathChanged,
    /// An end: the peer doesn't want it.
    Rejected(Rejected<'a>),
    /// An end: it could not be established.
    Failed {
        /// What could not be done.
        step: Step,
        /// Why. `ETIMEDOUT` if it took too long, `EXDEV` if the peer is reached by another device.
        error: Error,
    },
    /// An end: requests were under way, and none of them has ended for too long.
    Stalled,
    /// An end: the peer, or this side, has disconnected.
    Disconnected,
    /// An end: the device goes. The connection must be dropped soon: the device's removal waits.
    DeviceRemoval,
}

/// What came with the peer's answer.
#[derive(Debug)]
pub struct Established<'a> {
    /// Private data, padded; none on the accepting side.
    pub private_data: &'a [u8],
    /// How many reads and atomic operations of the peer are served at once, and how many it serves;
    /// on the accepting side that was settled before.
    pub responder_resources: u8,
    /// How many reads and atomic operations the peer serves at once.
    pub initiator_depth: u8,
}

impl<'a> Established<'a> {
    /// What came with an event; zeroes with one that is not of a connection.
    pub(super) fn of(event: &'a b::rdma_cm_event) -> Self {
        // SAFETY: This is the member that goes with events of connections; in others it is zero.
        let conn = unsafe { event.param.conn.as_ref() };
        Self {
            // SAFETY: The data, if any, are there as long as the event.
            private_data: unsafe { private_data(conn.private_data, conn.private_data_len) },
            responder_resources: conn.responder_resources,
            initiator_depth: conn.initiator_depth,
        }
    }
}

/// What came with the peer's rejection.
#[derive(Debug)]
pub struct Rejected<'a> {
    /// Why, as the wire has it: 28 if the peer's consumer didn't want it, 8 if nobody listens.
    pub reason: i32,
    /// Private data, padded.
    pub private_data: &'a [u8],
}

/// What a connection goes through, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// Finding the peer's address, and the device that leads there.
    Address,
    /// Finding the route there.
    Route,
    /// Being asked for, or accepted.
    Request,
    /// It is there.
    Established,
    /// It has ended.
    Ended,
}

impl Step {
    /// The step with this number.
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

/// The reason of a rejection by the peer's consumer.
pub const REJECTED_BY_CONSUMER: i32 = 28;
/// The reason of a rejection where nobody listens.
pub const REJECTED_NO_LISTENER: i32 = 8;

/// The reason of a rejection in words, by the connection manager; not over iWARP, where it is an errno. Any
/// context.
pub fn rejection(reason: i32) -> &'static CStr {
    // SAFETY: `ibcm_reject_msg` takes any value, and returns a string that is always there.
    unsafe { CStr::from_char_ptr(b::ibcm_reject_msg(reason)) }
}
