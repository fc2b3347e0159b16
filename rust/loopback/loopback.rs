// SPDX-License-Identifier: GPL-2.0

//! The kfabric provider "loop": memory registration without a device.
//!
//! It implements every feature of registration in software and serves as a reference for kfi_mr(3).
//! Peers are in the same machine. They use the extension in `ext`.

mod domain;
mod ep;
mod exported;
mod ext;
mod listener;
mod mr;
mod peer;
mod pool;
mod provider;
mod side;

// The files of this crate import these names, and each other's, by `crate::*`.
use core::any::Any;
use domain::Domain;
use exported::{
    ExportedDomain,
    Piece,
    MAPPED, //
};
use kfabric::{
    cpu_memory::{
        CpuMemory,
        PeerBuffer, //
    },
    prelude::*,
    provider::{
        cm::{
            ConnFailed,
            ConnRequest, //
        },
        cq::Context,
        kept::Kept,
        msg_ep::{
            MsgEpOps,
            MsgEpRequest,
            MsgLimits,
            Post,
            PostRefusal,
            QueueSpace, //
        },
        Bindings, //
    },
    Access,
    AtomicOp,
    Atomics,
    DomainRequest,
    EpCore,
    Extension,
    MappedKeys,
    MrLimits,
    MrRequest,
    Op,
    RemotePiece, //
};
use mr::Mode;
use peer::{
    Initiator,
    Target, //
};
use pool::Pool;
use side::Side;

module! {
    type: Module,
    name: "kfi_loop",
    authors: ["kfabric developers"],
    description: "kfabric provider without a device",
    license: "GPL",
}

/// The module.
struct Module {
    // The order of the fields is the order in which they go.
    _provider: kfabric::Registration<provider::Loop>,
    _work: side::TransferQueue,
}

impl Drop for Module {
    fn drop(&mut self) {
        listener::exit();
    }
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // SAFETY: First of all, and once.
        let work = unsafe {
            listener::init();
            side::TransferQueue::new()?
        };
        Ok(Self {
            _provider: kfabric::Registration::new()?,
            _work: work,
        })
    }
}
