// SPDX-License-Identifier: GPL-2.0

//! Fast memory regions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_mr`
//!
//! A region is always in one of three states, each a type of its own:
//!
//! ```text
//!             map()              LocalQp::register_all()
//!   FastMr ----------> PreparedMr -----------------------> ValidMr
//!     ^                    |                                |   ^ LocalQp::refresh_all()
//!     +----- unmap() ------+                                +---+
//!     +--------------- LocalQp::revoke_all() ---------------+
//! ```
//!
//! A region can also be registered without a [`LocalQp`](crate::LocalQp): by a request on a queue
//! pair of its consumer, to which it is [lent](crate::endpoint_mr) meanwhile.
//!
//! Peers can reach only a [`ValidMr`]. It owns the mapping of its memory, and gives that back only
//! once the device is done with it. If a work request fails, the state of the region at the device
//! is unknown. Then the region is deregistered, which is a fence on any device.

mod fast;
mod fence;
mod register_error;
mod valid;

pub use self::{
    fast::{
        FastMr,
        Kind,
        MapError,
        PreparedMr, //
    },
    fence::Fence,
    valid::ValidMr, //
};
pub(crate) use crate::mr::register_error::abandon_all;
pub use crate::mr::register_error::{
    RefreshError,
    RegisterError, //
};
