// SPDX-License-Identifier: GPL-2.0

//! The objects of the C API, on top of the traits of providers.
//!
//! Each object has a file with its class and state. Code that depends on objects above it is in files
//! beside it: `open.rs` opens the object, and `ops.rs` has slots and tables.

pub(crate) mod binding;
pub(crate) mod children;
mod closing;
pub(crate) mod cntr;
pub(crate) mod counters;
pub(crate) mod cq;
pub(crate) mod descs;
pub mod domain;
pub(crate) mod endpoint_mrs;
pub mod ep;
pub(crate) mod eq;
pub(crate) mod ext;
pub(crate) mod fabric;
pub(crate) mod info;
pub(crate) mod instances;
pub(crate) mod listing;
pub mod mr;
pub(crate) mod obj;
mod opening;
pub(crate) mod ops_slot;
pub(crate) mod pending_regs;
pub(crate) mod pep;
pub(crate) mod prelude;
mod queues;
pub(crate) mod reuse;
mod trace;
