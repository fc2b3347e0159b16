// SPDX-License-Identifier: GPL-2.0

//! Abstractions for the RDMA core.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)
//!
//! The crate covers what a kernel user needs to make memory reachable for a remote peer: finding
//! devices, protection domains, fast memory regions, DMA mapping, and a queue pair on which
//! regions are registered and invalidated.
//!
//! - [`client`] tells of devices that come and go; a [`Device`] held as an `ARef<Device>` stays
//!   until it is let go of, because its unregistration waits.
//! - [`Pd`] is a protection domain. It outlives whatever was made in it, also by others.
//! - [`sg`] builds, maps and borrows scatterlists.
//! - [`mr`] has a fast memory region in each of its states: [`FastMr`] (unreachable),
//!   [`PreparedMr`] (mapped, still unreachable), [`ValidMr`] (reachable). Each step consumes the
//!   one before it.
//! - [`LocalQp`] takes a region from prepared to valid and back.
//!
//! # What is memory safe here, and why
//!
//! A device writes to memory behind the compiler's back, so three promises hold all this up:
//!
//! - Memory enters as [`BorrowedPage<'static>`](kernel::page::BorrowedPage) or by an `unsafe`
//!   constructor: whoever makes one vouches that the memory stays until the region is closed.
//! - A mapping is owned by the region that uses it, and comes back only once the device can't
//!   use the region any more. If that can't be established, the mapping is leaked.
//! - No key covers more than what was asked for: there is no all-memory key in this crate.
//!
//! # Context
//!
//! All functions are for process context, and those that may sleep say so. Only the completion
//! callback of [`LocalQp`] runs in softirq context; it is private and takes no lock but that of
//! the completion it signals.

pub mod access;
pub mod client;
mod completion;
mod credits;
pub mod device;
pub mod dma;
mod errno;
pub mod events;
pub mod few;
mod leak;
pub mod limits;
pub mod local_qp;
pub mod mr;
pub mod pd;
pub mod port;
pub mod sg;
pub mod wr;

pub use access::{
    Access,
    AccessFlags, //
};
pub use device::Device;
pub use few::Few;
pub use limits::Limits;
pub use local_qp::{
    LocalQp,
    Outlook,
    RefreshError, //
};
pub use mr::{
    FastMr,
    PreparedMr,
    ValidMr, //
};
pub use pd::Pd;
pub use wr::WrError;

/// The prefix of this crate's log lines.
const __LOG_PREFIX: &[u8] = b"rdma\0";
