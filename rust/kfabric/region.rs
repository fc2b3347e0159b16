// SPDX-License-Identifier: GPL-2.0

//! One registration as a value: what is asked for, and the memory that it is about.
//!
//! Knows no objects and no providers.

pub(crate) mod access;
pub mod extent;
pub(crate) mod judge;
pub(crate) mod lease;
pub(crate) mod memory;
pub(crate) mod rawkey;
pub(crate) mod request;
pub(crate) mod runs;
pub(crate) mod shape;
pub(crate) mod source;
pub mod transfer;
