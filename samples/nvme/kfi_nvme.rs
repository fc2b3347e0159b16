// SPDX-License-Identifier: GPL-2.0

//! kfabric in Rust: an NVMe over Fabrics transport under the kernel's nvme-core. The namespaces of
//! a target, for example the kernel's own `nvmet-rdma`, are disks here.
//!
//! nvme-core has controllers, namespaces, multipath, recovery rules and authentication. Crate
//! `nvme` translates between nvme-core and a [`Transport`](nvme::Transport). This module is the transport, over the
//! public API of kfabric. Its only unsafe code is the promise of `region` about memory:
//!
//! - `target`: the address of a target, and the device that leads there.
//! - `connection`: connects an endpoint, and sends and receives capsules.
//! - `greeting`: the private data of a connection request.
//! - `capsule`: the memory of commands and responses.
//! - `region`: gives the target access to the data of a request, without a copy.
//! - `queue`: sends requests, and ends them.
//!
//! # Ownership of memory
//!
//! - Posting a capsule gives it away. The capsule comes back when it was sent or received.
//! - A region owns the data of its request. Only emptying it returns them, when the target has no
//!   access any more. A request doesn't end before.

// Unsafe code needs an attribute that gives the reason.
#![deny(unsafe_code)]

mod capsule;
mod connection;
mod greeting;
mod queue;
mod region;
mod target;

use crate::capsule::Kfi;
use kernel::prelude::*;
use nvme::Registration;

module! {
    type: Module,
    name: "kfi_nvme",
    authors: ["kfabric developers"],
    description: "kfabric in Rust: an NVMe over Fabrics transport",
    license: "GPL",
    alias: ["nvme-kfi"],
}

/// Makes modprobe load the provider first. A consumer finds its provider by name, which depmod
/// doesn't see.
#[used]
#[expect(unsafe_code, reason = "a section of modinfo may have any string")]
#[link_section = ".modinfo"]
static SOFTDEP: [u8; 23] = *b"softdep=pre: kfi_verbs\0";

struct Module {
    _registration: Registration<Kfi>,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            _registration: Registration::new()?,
        })
    }
}
