// SPDX-License-Identifier: GPL-2.0

//! The objects that C has, over what providers implement.
//!
//! What they have in common is written once: `obj.rs` says what there is to an object and looks it
//! up, `fid.rs` tells kinds apart; then there are `opening.rs`, `closing.rs`, `binding.rs`, and
//! `place.rs`, an object among the `children.rs` of another. `queues.rs` has the arguments that queues
//! and counters share.
//!
//! An object's own file has its kind, what the core keeps with it, and what keeps it from being
//! closed. Beside it are `open.rs`, which makes it, and `ops.rs`, the tables of operations that C
//! finds in it. Tables name the functions that open other objects.

pub(crate) mod binding;
pub(crate) mod children;
mod closing;
pub(crate) mod cntr;
pub(crate) mod cq;
pub(crate) mod descs;
pub mod domain;
pub mod ep;
pub(crate) mod eq;
pub(crate) mod ext;
pub(crate) mod fabric;
pub(crate) mod fid;
pub(crate) mod info;
pub(crate) mod instances;
pub mod mr;
pub(crate) mod obj;
mod opening;
pub(crate) mod pep;
pub(crate) mod place;
mod queues;
pub(crate) mod ties;
pub(crate) mod unsettled;
