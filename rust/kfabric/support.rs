// SPDX-License-Identifier: GPL-2.0

//! What the kernel crate lacks, and what every call of the API is made of.
//!
//! Knows no regions and no objects; most of it could stand in `rust/kernel/`.

pub(crate) mod array_vec;
pub(crate) mod c_ref;
pub(crate) mod cache;
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) mod chance;
pub(crate) mod child_list;
pub(crate) mod cstr;
pub(crate) mod errno;
pub mod fifo;
pub mod gate;
pub(crate) mod hlist;
pub mod irqlock;
pub(crate) mod module;
pub(crate) mod noio;
pub mod num;
pub(crate) mod push_reserved;
pub mod random;
pub(crate) mod refusal;
pub(crate) mod sockaddr;
pub(crate) mod strings;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod version;
pub(crate) mod work;
pub mod workqueue;
