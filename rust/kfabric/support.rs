// SPDX-License-Identifier: GPL-2.0

//! Basics that the kernel crate lacks, and the parts of every call of the API.
//!
//! This room knows no regions and no objects. Most of it could stand in `rust/kernel/`.

pub(crate) mod c_ref;
pub(crate) mod cache;
pub(crate) mod child_list;
pub(crate) mod errno;
pub mod gate;
pub(crate) mod hlist;
pub mod irqlock;
pub(crate) mod module;
pub mod num;
pub mod prelude;
pub mod random;
pub(crate) mod refusal;
pub(crate) mod slow_wait;
pub(crate) mod sockaddr;
pub(crate) mod strings;
pub(crate) mod table;
pub(crate) mod task;
pub mod trace;
pub mod vec;
pub mod workqueue;
