// SPDX-License-Identifier: GPL-2.0

//! One registration as a value: its arguments and its memory.
//!
//! This room knows no objects and no providers. Its words:
//!
//! | word | is |
//! |---|---|
//! | segment | an entry of the consumer's list |
//! | gap | a joint of two segments that one device region can't have |
//! | span | a range of addresses of any kind: start and length |
//! | extent, run | contiguous memory; "run" in C helpers and variables |
//! | piece | one device region with a key of its own: all of a region, or one of several |

pub(crate) mod access;
pub mod cpu_memory;
pub(crate) mod extents;
pub(crate) mod lease;
pub(crate) mod limits;
pub(crate) mod rawkey;
pub(crate) mod request;
pub(crate) mod segment_list;
pub(crate) mod shape;
