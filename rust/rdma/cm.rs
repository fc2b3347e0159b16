// SPDX-License-Identifier: GPL-2.0

//! Connections through the RDMA connection manager.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! The connection manager takes IPv4 and IPv6 addresses over every kind of fabric. It connects an
//! [`Endpoint`]: a queue pair that accepts receive requests from its creation. This crate changes
//! the state of the queue pair, because the connection manager would take access rights from the
//! peer.
//!
//! - The passive side has a [`Listener`]. The listener calls [`Requests::request`] with an
//!   [`Incoming`] for each request of a peer. The owner [accepts](Incoming::accept) or rejects it
//!   in the call or later.
//! - The active side [opens](Connection::open) a connection. If it must know the device first, it
//!   [resolves](Resolved::new) the address and connects [from there](Resolved::connect).
//! - Both sides get a [`Connection`] and its [`Event`]s. An attempt to connect ends within the
//!   limit given by the caller.
//!
//! # Context
//!
//! The connection manager's handlers call [`Requests`] and [`Events`] in process context. One
//! handler runs at a time for a connection. Some events share one task in the whole machine. An
//! implementation must not wait for another event, and must not destroy an identifier, because
//! destruction waits for the handler. See [`Events::event`]. Allocations in a handler do not start
//! I/O.
//!
//! Lock order: the lock of an identifier comes before all locks that handlers take.

mod address;
mod chain;
mod conn_param;
mod connection;
mod endpoint;
mod id;
mod listener;
mod resolve;
mod timer;

// The files of this module import these names by `use super::*`.
use self::{
    address::Storage,
    conn_param::{
        checked_len,
        private_data, //
    },
    connection::{
        error_of,
        ConnState, //
    },
    id::{
        without_io,
        Id,
        Locked,
        Target, //
    },
    timer::{
        StallTimer,
        Timer, //
    }, //
};
use crate::{
    prelude::*,
    qp::{
        Init,
        Qp, //
    }, //
};
use rdma_bindings as b;

pub use self::{
    chain::{
        Chain,
        Tail,
        Unposted, //
    },
    conn_param::{
        ConnParam,
        MAX_ACCEPT_DATA,
        MAX_REJECT_DATA,
        MAX_REQUEST_DATA, //
    },
    connection::{
        Connection,
        Proposal, //
    },
    endpoint::Endpoint,
    id::{
        rejection,
        Established,
        Event,
        Events,
        Rejected,
        Step,
        REJECTED_BY_CONSUMER,
        REJECTED_NO_LISTENER, //
    },
    listener::{
        Incoming,
        Listener,
        Requests, //
    },
    resolve::{
        device_of,
        Resolved, //
    },
    timer::TimerWorkqueue, //
};
