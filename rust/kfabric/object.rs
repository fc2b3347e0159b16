// SPDX-License-Identifier: GPL-2.0

//! The objects of the C API, on top of the traits of providers.
//!
//! The common parts of all objects:
//!
//! - `obj.rs` defines an object and its class, and finds the object by its fid.
//! - `opening.rs`, `closing.rs` and `binding.rs` have the calls of all objects.
//! - `children.rs` has the entry of an object in its parent, and the count of open children.
//! - `queues.rs` has the common parts of queues and counters.
//!
//! Each object has a file with its class and state. Code that depends on objects above it is in files
//! beside it: `open.rs` opens the object, and `ops.rs` has slots and tables.

pub(crate) mod binding;
pub(crate) mod children;
mod closing;
pub(crate) mod cntr;
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
pub mod mr;
pub(crate) mod obj;
mod opening;
pub(crate) mod pending_regs;
pub(crate) mod pep;
pub(crate) mod prelude;
mod queues;
