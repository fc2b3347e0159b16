// SPDX-License-Identifier: GPL-2.0

//! An NVMe over Fabrics target that can't be trusted, on kfabric's passive side: one answer in
//! `one_in` is a wrong one. A seed determines which.

#![forbid(unsafe_code)]

mod dice;
mod target;

use core::net::{
    IpAddr,
    Ipv4Addr,
    SocketAddr, //
};
use kernel::{
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    consumer::{
        Fabric,
        Hints,
        Incoming,
        ListenHandler,
        Listener,
        ListenerOptions,
        MrMode, //
    },
    workqueue::OwnedQueue, //
};
use target::Rogue;

module! {
    type: Module,
    name: "kfi_rogue",
    authors: ["kfabric developers"],
    description: "kfabric selftest: a target of NVMe over Fabrics that can't be trusted",
    license: "GPL",
    params: {
        address: u32 {
            default: 0xc000_0201,
            description: "the IPv4 address to listen at, as a number; 192.0.2.1 if not said",
        },
        seed: u64 {
            default: 1,
            description: "what chance goes by",
        },
        one_in: u64 {
            default: 8,
            description: "one answer in so many is a wrong one",
        },
        way: u64 {
            default: 255,
            description: "or each to a command that reads or writes, in this of some ways (target.rs)",
        },
        silent: u64 {
            default: 0,
            description: "the step from which on nothing is answered (target.rs); 0: none",
        },
        metadata: u64 {
            default: 0,
            description: "bytes of metadata with each block of the namespace",
        },
        protection: u64 {
            default: 0,
            description: "the type of protection information in the metadata; 0: none",
        },
        sgls: u32 {
            default: 0x0010_0004,
            description: "SGLS of the controller, by default SGLs with keys, and data in capsules",
        },
        icdoff: u16 {
            default: 0,
            description: "the offset of data in capsules, in 16 bytes",
        },
    },
}

/// The port.
const PORT: u16 = 4421;

struct Module {
    // Dropped in this order, after those who serve were told.
    listener: Option<Listener>,
    tasks: Arc<OwnedQueue>,
    rogue: Arc<Rogue>,
}

/// Has each connection served by a task.
struct Serves {
    tasks: Arc<OwnedQueue>,
    rogue: Arc<Rogue>,
}

impl ListenHandler for Serves {
    fn request(&self, request: Incoming) {
        let serving = pin_init!(Serving {
            rogue: self.rogue.clone(),
            request <- new_mutex!(Some(request)),
            work <- new_work!("kfi_rogue"),
        });
        // If not, it is rejected.
        if let Ok(serving) = Arc::pin_init(serving, GFP_KERNEL) {
            // It is new.
            let _ = self.tasks.enqueue(serving);
        }
    }
}

/// A connection, to be served by a task.
#[pin_data]
struct Serving {
    rogue: Arc<Rogue>,
    #[pin]
    request: Mutex<Option<Incoming>>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Serving { self.work }
}

impl WorkItem for Serving {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let request = this.request.lock().take();
        if let Some(request) = request {
            // A host that is gone, mostly.
            let _ = target::serve(&this.rogue, request);
        }
    }
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let params = params();
        let rogue = Arc::new(
            Rogue {
                stops: Atomic::new(false),
                one_in: params.one_in,
                way: params.way,
                silent: params.silent,
                metadata: params.metadata,
                protection: params.protection,
                sgls: params.sgls,
                icdoff: params.icdoff,
                seed: params.seed,
                format: Atomic::new(0),
                connections: Atomic::new(0),
                answers: Atomic::new(0),
                wrong: Atomic::new(0),
                refused: Atomic::new(0),
                reached: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        let tasks = Arc::new(OwnedQueue::new(c"kfi_rogue", 32)?, GFP_KERNEL)?;
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::from(params.address)), PORT);
        let offers = Hints::new()?
            .prov_name(c"verbs")?
            .msg()
            .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
            .source(address)?
            .getinfo()?;
        let fabric = Fabric::open(offers.first())?;
        let serves = Serves {
            tasks: tasks.clone(),
            rogue: rogue.clone(),
        };
        let options = ListenerOptions::default().handler(KBox::new(serves, GFP_KERNEL)?);
        let listener = Listener::open(&fabric, offers.first(), options)?;
        pr_info!(
            "seed {}, one answer in {} is wrong\n",
            params.seed,
            params.one_in
        );
        Ok(Self {
            listener: Some(listener),
            tasks,
            rogue,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.rogue.stops.store(true, Relaxed);
        drop(self.listener.take());
        self.tasks.flush();
        pr_info!(
            "{} connections, {} answers, {} of them wrong; {} forbidden accesses refused, {} done\n",
            self.rogue.connections.load(Relaxed),
            self.rogue.answers.load(Relaxed),
            self.rogue.wrong.load(Relaxed),
            self.rogue.refused.load(Relaxed),
            self.rogue.reached.load(Relaxed)
        );
    }
}

struct Params {
    address: u32,
    seed: u64,
    one_in: u64,
    way: u64,
    silent: u64,
    metadata: u64,
    protection: u64,
    sgls: u32,
    icdoff: u16,
}

// The kernel's parameters changed with 7.3.
#[cfg(kernel_7_3)]
fn params() -> Params {
    Params {
        address: module_parameters::address.value(),
        seed: module_parameters::seed.value(),
        one_in: module_parameters::one_in.value(),
        way: module_parameters::way.value(),
        silent: module_parameters::silent.value(),
        metadata: module_parameters::metadata.value(),
        protection: module_parameters::protection.value(),
        sgls: module_parameters::sgls.value(),
        icdoff: module_parameters::icdoff.value(),
    }
}

#[cfg(not(kernel_7_3))]
fn params() -> Params {
    Params {
        address: *module_parameters::address.value(),
        seed: *module_parameters::seed.value(),
        one_in: *module_parameters::one_in.value(),
        way: *module_parameters::way.value(),
        silent: *module_parameters::silent.value(),
        metadata: *module_parameters::metadata.value(),
        protection: *module_parameters::protection.value(),
        sgls: *module_parameters::sgls.value(),
        icdoff: *module_parameters::icdoff.value(),
    }
}
