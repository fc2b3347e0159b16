// SPDX-License-Identifier: GPL-2.0

//! The traits that a provider implements, in safe Rust.
//!
//! A [`Provider`] opens [`FabricOps`]s, a fabric opens [`DomainOps`]s, a domain registers [`MrOps`]s. The
//! core owns the C objects, checks every argument once, counts children and pins modules; a
//! provider sees valid requests only.
//!
//! The [contexts](crate#contexts) define "may sleep" and "any context". The core drops a provider's
//! objects where they may sleep.

pub mod cm;
pub(crate) mod cntr;
pub mod cq;
pub(crate) mod domain;
pub(crate) mod ep;
pub(crate) mod fabric;
pub mod kept;
pub(crate) mod mr;
pub mod msg_ep;
pub mod reuse;
pub mod ticket;

pub use domain::{
    Direct,
    Dma,
    DomainOps,
    DomainRequest,
    MrBatch,
    RawSgl,
    Registered, //
};
pub use fabric::{
    FabricOps,
    Provider, //
};
pub use mr::{
    BatchEntry,
    Bindings,
    Keys,
    MrOps,
    ProviderMr,
    PART_SIZE, //
};
