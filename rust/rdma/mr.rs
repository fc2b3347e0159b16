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
//! Instead of by a [`LocalQp`](crate::LocalQp) a region can be registered by a request on a queue pair of
//! its consumer's, to which it is [lent](crate::lent) meanwhile.
//!
//! Only a [`ValidMr`] is reachable for peers. It owns what keeps its memory mapped, and gives that
//! back only once the device is done with it. Where it isn't known what state the device has a
//! region in, because a work request failed, it is deregistered, which is a fence on any device.

mod fast;
mod fence;
mod prepared;
mod raw;
mod register;
mod suspended;
mod valid;

pub(crate) use self::register::abandon_all;
pub use self::{
    fast::FastMr,
    fence::Fence,
    prepared::{
        MapError,
        PreparedMr, //
    },
    raw::Kind,
    register::{
        RefreshError,
        RegisterError, //
    },
    valid::ValidMr, //
};
