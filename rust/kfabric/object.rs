// SPDX-License-Identifier: GPL-2.0

//! The objects that C has, over what providers implement.
//!
//! An object's own file has its struct, how a `struct kfid` leads to it, and its end. Beside it are
//! `open.rs`, which makes it, and `ops.rs`, the tables of operations that C finds in it. Tables name
//! the functions that open other objects, and are named by nobody but `open.rs`.

pub(crate) mod children;
pub(crate) mod cntr;
pub mod domain;
pub mod ep;
pub(crate) mod eq;
pub(crate) mod ext;
pub(crate) mod fabric;
pub(crate) mod fid;
pub mod mr;
