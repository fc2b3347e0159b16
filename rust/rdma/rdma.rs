// SPDX-License-Identifier: GPL-2.0

//! Abstractions for the RDMA core.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h),
//! [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! The crate makes memory reachable for a remote peer: it finds devices, maps memory, registers and
//! invalidates fast memory regions, and connects queue pairs.
//!
//! - A [`Client`](client::Client) learns of new and removed devices. The removal of a [`Device`]
//!   waits for each `ARef<Device>`.
//! - A [`Pd`] outlives all objects on it, also those of other users.
//! - A fast memory region has a type for each state: [`FastMr`] (without memory), [`PreparedMr`]
//!   (mapped, unreachable), [`ValidMr`] (reachable). Each step consumes the previous one.
//!   [`RegQp`] takes a region from prepared to valid and back.
//! - A [`Qp`] is connected step by step, or to the queue pair of a peer by [`cm`]. Its requests
//!   ([`wr`]) own the memory that they refer to ([`in_flight`]). Nobody waits for a [`request`].
//!
//! # Memory safety
//!
//! A device writes to memory behind the compiler's back. Three rules make that safe:
//!
//! - Memory enters as a [`Run`](sg::Run) or through an `unsafe` constructor. The caller must ensure
//!   that the memory stays until the region is closed.
//! - The region that uses a mapping owns it. The mapping is undone once the device cannot use the
//!   region any more. If that cannot be established, the mapping is leaked.
//! - No key covers more than the requested memory: this crate has no key to all memory.
//!
//! # Context
//!
//! Functions are for process context, unless they say "any context". Functions that may sleep say
//! so. The completion callback of requests runs in softirq context, or in a task that polls for
//! completions. It takes only the lock of the completion that it signals, and calls the handler of
//! the [`Request`](request::Request).

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
pub mod mr;
mod outstanding;
pub mod pd;
pub mod port;
mod prelude;
pub mod qp;
pub mod read_sink;
pub mod reg_qp;
pub mod replays;
pub mod request;
pub mod reusable_mr;
mod segments;
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
    reg_qp::RegQp,
    small_vec::SmallVec,
    wc::WrError, //
};

/// The prefix of this crate's log lines.
const __LOG_PREFIX: &[u8] = b"rdma\0";
