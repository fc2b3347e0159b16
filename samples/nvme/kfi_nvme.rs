// SPDX-License-Identifier: GPL-2.0

//! kfabric in Rust: an NVMe over Fabrics host. The namespaces of a target, for example the kernel's
//! own `nvmet-rdma`, are disks here.
//!
//! Few files use kfabric. `transport` connects endpoints and sends capsules. `keys` gives the
//! target access to the data of a command, which are the pages of the I/O request itself. The rest
//! is NVMe. `command` and `response` are the messages, `link` brings a controller up, and `queue`
//! carries out I/O. `controller` looks after all of it. `namespace` is the side of the block layer,
//! and `control` that of the administrator.
//!
//! Whose memory it is:
//!
//! - A capsule that is sent is given away, and comes back when it was sent.
//! - An I/O request is a part of the region that its pages are. It can't end before the target's key has:
//!   closing the region is what gives it back.

mod channel;
mod command;
mod control;
mod controller;
mod identify;
mod keys;
mod link;
mod namespace;
mod options;
mod queue;
mod response;
mod transport;

use control::Control;
use kernel::prelude::*;

module! {
    type: Module,
    name: "kfi_nvme",
    authors: ["kfabric developers"],
    description: "kfabric in Rust: an NVMe over Fabrics host",
    license: "GPL",
}

/// Has modprobe load the provider first. A consumer finds its provider by name, which depmod doesn't see.
#[used]
#[link_section = ".modinfo"]
static SOFTDEP: [u8; 23] = *b"softdep=pre: kfi_verbs\0";

struct Module {
    _control: Control,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // SAFETY: A module is initialized once.
        let control = unsafe { Control::new() }?;
        Ok(Self { _control: control })
    }
}
