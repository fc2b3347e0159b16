// SPDX-License-Identifier: GPL-2.0

//! kfabric: one fabric API for kernel code over many providers.
//!
//! This is the core. It owns the C objects of the API in `include/`, parses what consumers pass
//! in, and dispatches to providers, which it knows by the traits in [`provider`] only.

mod access;
mod calls;
#[cfg(CONFIG_KUNIT = "y")]
mod chance;
mod children;
mod cntr;
pub mod consumer;
mod counter;
pub mod dma;
pub mod domain;
mod endpoint;
pub mod ep;
mod eq;
mod errno;
mod extension;
pub mod extent;
mod fabric;
mod fid;
pub mod gate;
mod getinfo;
mod guard;
mod hints;
mod info;
pub mod irqlock;
mod judge;
mod keymap;
mod layout;
mod lease;
pub mod line;
mod memory;
mod module;
pub mod mr;
mod noio;
pub mod num;
mod offer;
pub mod provider;
pub mod random;
mod raw;
mod rawkey;
mod refusal;
mod registration;
mod registry;
mod request;
mod reserve;
mod runs;
mod shape;
mod source;
mod strings;
mod table;
pub mod transfer;
mod work;
pub mod workqueue;

pub use crate::{
    access::Access,
    counter::Counter,
    domain::DomainRequest,
    endpoint::Endpoint,
    errno::Errno,
    extension::{
        Extension,
        ExtensionTable, //
    },
    memory::{
        Piece,
        Pieces, //
    },
    noio::NoIo,
    offer::{
        Extras,
        Offer, //
    },
    raw::MappedKeys,
    rawkey::{
        raw_key_size,
        RemotePiece,
        MOST_PIECES, //
    },
    refusal::Refusal,
    registration::Registration,
    request::{
        MrLimits,
        MrRequest, //
    },
    runs::Run,
    shape::{
        Shape,
        Span, //
    },
    source::{
        List,
        Source, //
    },
};
use kernel::prelude::*;

/// The version of the API, 1.7, as `KFI_VERSION` packs it.
pub const API_VERSION: u32 =
    (kfi_bindings::KFI_MAJOR_VERSION << 16) | kfi_bindings::KFI_MINOR_VERSION;

module! {
    type: Core,
    name: "kfabric",
    authors: ["kfabric developers"],
    description: "Kernel fabric interfaces",
    license: "GPL",
}

struct Core {
    _modules: module::Watch,
}

impl kernel::Module for Core {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // SAFETY: First of all, and once.
        unsafe {
            registry::init();
            guard::init();
            reserve::init();
            consumer::init();
        }
        let modules = module::Watch::new()?;
        // SAFETY: Once, and before anybody can call in.
        unsafe { work::init()? };
        Ok(Core { _modules: modules })
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: No object is open any more, and nobody can call in.
        unsafe { work::exit() };
        consumer::exit();
        registry::exit();
    }
}
