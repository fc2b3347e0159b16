// SPDX-License-Identifier: GPL-2.0

//! The objects of the C API, on top of the traits of providers.
//!
//! The common parts of all objects:
//!
//! - `obj.rs` defines an object, and finds it by its fid. `fid.rs` distinguishes classes of objects.
//! - `opening.rs`, `closing.rs` and `binding.rs` have the calls of all objects.
//! - `place.rs` is the entry of an object in its parent, and `children.rs` the count of open children.
//! - `queues.rs` has the common parts of queues and counters.
//!
//! Each object has a file with its class and state. `open.rs` and `ops.rs` beside it open the object and define
//! its tables, where these depend on objects above it.

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
pub(crate) mod pending_regs;
pub(crate) mod pep;
mod queues;
