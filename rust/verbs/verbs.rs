// SPDX-License-Identifier: GPL-2.0

//! The kfabric provider "verbs": memory registration and connected endpoints over the kernel's RDMA
//! core.
//!
//! The only crate that knows both the fabric ([`kfabric`]) and the RDMA abstractions ([`rdma`]).

mod device;
mod domain;
mod driver_errors;
mod ep;
mod ext;
mod lists;
mod mode;
mod mr;
mod offers;
mod params;
mod pep;
mod pool;
mod prelude;
mod provider;
mod reg_queue;
mod region;
mod removal;
mod removal_callbacks;
mod resources;
mod rights;
mod rxe;
mod stock;
mod work;

use kernel::prelude::*;

module! {
    type: Module,
    name: "kfi_verbs",
    authors: ["kfabric developers"],
    description: "kfabric provider over the RDMA core",
    license: "GPL",
}

/// The module. Consumers are let go first, then devices, then the work on both.
struct Module {
    _provider: kfabric::Registration<provider::Verbs>,
    _client: Pin<KBox<rdma::client::Registration<device::Watcher>>>,
    _work: work::Work,
    _devices: device::List,
    _figures: pool::figures::Root,
    _lists: rdma::sg::Caches,
    _timers: rdma::cm::TimerWorkqueue,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        if params::weak_fence() {
            pr_warn!("weak_fence: closed regions may still be reached for a moment\n");
        }
        // SAFETY: First of all, and once: nobody has used these files' statics yet.
        let (alarms, lists, figures, devices, work) = unsafe {
            (
                rdma::cm::TimerWorkqueue::new()?,
                rdma::sg::Caches::new()?,
                pool::figures::Root::new(),
                device::List::new(),
                work::Work::new()?,
            )
        };
        let client = KBox::pin_init(rdma::client::Registration::new(), GFP_KERNEL)?;
        Ok(Self {
            _provider: kfabric::Registration::new()?,
            _client: client,
            _work: work,
            _devices: devices,
            _figures: figures,
            _lists: lists,
            _timers: alarms,
        })
    }
}
