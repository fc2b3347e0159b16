// SPDX-License-Identifier: GPL-2.0

//! Connections, by the RDMA connection manager.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! The manager knows internet addresses, of version 4 and 6, over every kind of network. What is
//! connected is an [`Endpoint`]: a queue pair of this crate's that takes receive requests from the
//! start. Its states are changed here, not by the manager, which would go by the peer's word.
//!
//! - One side has a [`Listener`]; it is told of each request of a peer, an [`Incoming`], to
//!   [accept](Incoming::accept) it or not, then or later.
//! - The other one [opens](Connection::open) a connection. Where the device has to be known before,
//!   it [resolves](Resolved::new) the address first and connects [from there](Resolved::connect).
//! - Both get a [`Connection`], and are told its [`Event`]s: that it is there, and that it has
//!   ended. However long the manager or the peer would take, connecting ends in the time that is
//!   given for it.
//!
//! # Context
//!
//! All that is told, by [`Requests`] and [`Events`], is told in the connection manager's handlers,
//! of which it has one at a time for a connection, and for some events one at a time for the
//! machine. So whoever is told may not wait for anything that takes another event, and may not
//! destroy: to destroy an identifier waits for its handler. See [`Events::event`]. No allocation there starts
//! I/O.
//!
//! Lock order: the lock of an identifier, under which events are told, comes before whatever is
//! taken there.

mod address;
mod chain;
mod conn_param;
mod connection;
mod endpoint;
mod event;
mod id;
mod listener;
mod resolve;
mod timer;

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
    event::{
        rejection,
        Established,
        Event,
        Events,
        Rejected,
        Step, //
        REJECTED_BY_CONSUMER,
        REJECTED_NO_LISTENER,
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
