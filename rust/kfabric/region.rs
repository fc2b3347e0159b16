// SPDX-License-Identifier: GPL-2.0

//! One registration as a value: what is asked for, and the memory that it is about.
//!
//! Knows no objects and no providers.
//!
//! One word for one thing:
//!
//! | word | is |
//! |---|---|
//! | segment | an entry of the consumer's list |
//! | gap | what is between two segments that a device can't have in one region of its own |
//! | span | a range of addresses, whatever they address: where it starts, and its length |
//! | run | memory that is contiguous, as long as it goes on |
//! | piece | what is one region to the device, with a key of its own: all of a region, or one of several |
//!
//! A part is any part of anything.

pub(crate) mod access;
pub mod cpu_memory;
pub(crate) mod lease;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod pieces;
pub(crate) mod rawkey;
pub(crate) mod request;
pub(crate) mod segments;
pub(crate) mod shape;
pub(crate) mod source;
