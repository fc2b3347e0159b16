// SPDX-License-Identifier: GPL-2.0

//! One transfer as a value: what is to be moved, the memory at this side, the peer's.
//!
//! Knows no objects and no providers. All of it is for any context.

pub(crate) mod buffers;
pub(crate) mod injected;
pub(crate) mod local;
pub(crate) mod op;
pub(crate) mod remote;
