// SPDX-License-Identifier: GPL-2.0

//! Abstractions for the RDMA core.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h),
//! [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! The crate covers what a kernel user needs to make memory reachable for a remote peer: finding
//! devices, protection domains, fast memory regions, DMA mapping, queue pairs and their requests,
//! and requests that register and invalidate regions.
//!
//! - [`client`] tells of devices that come and go; a [`Device`] held as an `ARef<Device>` stays
//!   until it is let go of, because its unregistration waits.
//! - [`Pd`] is a protection domain. It outlives whatever was made in it, also by others.
//! - [`sg`] builds, maps and borrows scatterlists.
//! - [`mr`] has a fast memory region in each of its states: [`FastMr`] (unreachable),
//!   [`PreparedMr`] (mapped, still unreachable), [`ValidMr`] (reachable). Each step consumes the
//!   one before it.
//! - [`Cq`] and [`Qp`] are a completion queue and a reliable queue pair, connected step by step.
//!   [`wr`] has what is posted there, with the owners of the memory that it refers to ([`in_flight`]),
//!   and [`request`] requests that nobody waits for.
//! - [`cm`] connects queue pairs with others' by internet addresses.
//! - [`LocalQp`] takes a region from prepared to valid and back.
//!
//! # What is memory safe here, and why
//!
//! A device writes to memory behind the compiler's back, so three promises hold all this up:
//!
//! - Memory enters as a [`Run`](sg::Run) or by an `unsafe` constructor: whoever makes one vouches that the
//!   memory stays until the region is closed.
//! - A mapping is owned by the region that uses it, and comes back only once the device can't
//!   use the region any more. If that can't be established, the mapping is leaked.
//! - No key covers more than what was asked for: there is no all-memory key in this crate.
//!
//! # Context
//!
//! All functions are for process context, unless they say "any context", and those that may sleep
//! say so. The completion callback of requests runs in softirq context, or in a task that looks for
//! completions; it takes no lock but that of the completion it signals, and calls what was given
//! with a [`Request`](request::Request).

pub mod access;
pub mod client;
pub mod cm;
mod completion;
pub mod cq;
mod credits;
pub mod device;
pub mod dma;
pub mod endpoint_mr;
mod errno;
pub mod gather;
pub mod in_flight;
pub mod local_qp;
pub mod mr;
mod outstanding;
pub mod pd;
pub mod port;
mod prelude;
pub mod qp;
pub mod read_sink;
pub mod replays;
pub mod request;
pub mod sg;
pub mod small_vec;
pub mod srq;
mod waiter;
pub mod wc;
pub mod wr;
mod wr_batch;

pub use crate::{
    access::{
        Access,
        AccessFlags, //
    },
    cq::Cq,
    device::{
        Device,
        Limits, //
    },
    gather::{
        Buffer,
        Gather, //
    },
    local_qp::LocalQp,
    mr::{
        FastMr,
        PreparedMr,
        RefreshError,
        ValidMr, //
    },
    pd::{
        Counted,
        Others,
        Pd, //
    },
    qp::Qp,
    read_sink::Sink,
    small_vec::SmallVec,
    wc::WrError, //
};

/// The prefix of this crate's log lines.
const __LOG_PREFIX: &[u8] = b"rdma\0";
