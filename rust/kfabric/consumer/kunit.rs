// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the Rust API, and of the core through it, over a provider of their own.

mod batch;
mod close;
mod cq;
mod eq;
#[cfg(CONFIG_KUNIT = "y")]
mod fake;
mod forget;
mod noio;
mod objects;
mod provider;
mod raw;
mod reg;
mod request;
