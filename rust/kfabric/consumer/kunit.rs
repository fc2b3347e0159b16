// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the Rust API, and of the core through it, over a provider of their own.

mod close;
mod cq;
mod fake;
mod objects;
mod reg;
mod request;

// The files of these tests import these names by `super::*`.
use super::*;
use fake::*;
