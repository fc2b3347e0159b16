// SPDX-License-Identifier: GPL-2.0

//! The kfabric provider "verbs": memory registration over the kernel's RDMA core.
//!
//! The only crate that knows both the fabric ([`kfabric`]) and the RDMA abstractions ([`rdma`]).

mod callbacks;
mod device;
mod domain;
mod ext;
mod fence;
mod ffi;
mod kit;
mod link;
mod lists;
mod params;
mod pool;
mod provider;
mod queue;
mod refused;
mod region;
mod regions;
mod rights;

use kernel::prelude::*;

module! {
    type: Module,
    name: "kfi_verbs",
    authors: ["kfabric developers"],
    description: "kfabric provider over the RDMA core",
    license: "GPL",
    params: {
        weak_fence: u8 {
            default: 0,
            description: "1: close and refresh regions of software devices by invalidation; a peer's access under way may then hit freed memory",
        },
        pool_pages: u32 {
            default: 16384,
            description: "how many pages the idle device regions of a domain may have together (0: no pool)",
        },
        pool_idle: u32 {
            default: 10,
            description: "seconds after which what nobody needed goes back to the device (0: never)",
        },
    },
}

/// The module. Consumers are let go first, then devices, then the work on both.
struct Module {
    _provider: kfabric::Registration<provider::Verbs>,
    _client: Pin<KBox<rdma::client::Registration<device::Verbs>>>,
    _work: device::Work,
    _root: pool::Root,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        if params::weak_fence() {
            pr_warn!("weak_fence: closed regions may still be reached for a moment\n");
        }
        // SAFETY: First of all, and once.
        let root = unsafe {
            device::init();
            pool::Root::new()
        };
        let work = device::Work::new()?;
        let client = KBox::pin_init(rdma::client::Registration::new(), GFP_KERNEL)?;
        Ok(Self {
            _provider: kfabric::Registration::new()?,
            _client: client,
            _work: work,
            _root: root,
        })
    }
}
