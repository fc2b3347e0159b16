// SPDX-License-Identifier: GPL-2.0

//! The devices that can serve, as they come and go.
//!
//! Lock order: `DEVICES`, then a device's `state`. Neither is held while a domain goes away.

use crate::link::{
    self,
    Link, //
};
use core::mem;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    task::Pid, //
};
use kfabric::{
    workqueue::OwnedQueue,
    NoIo, //
};
use rdma::{
    client::Client,
    port::{
        Port,
        Protocol, //
    },
    Limits, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static DEVICES: Mutex<KVec<Arc<Device>>> = KVec::new();
}

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static WORK: Mutex<Option<Queues>> = None;
}

/// Initializes the list.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: By the requirements of this function.
    unsafe {
        DEVICES.init();
        WORK.init();
    }
}

/// How many pools are refilled at a time. Each has one piece of work, which the driver serializes
/// with others' anyway, and which nobody waits for.
const REFILLS_AT_ONCE: u8 = 4;

/// How many registration queues look around at a time, which is seldom and takes a while.
const LOOKS_AT_ONCE: u8 = 4;

/// The module's workqueues.
#[derive(Clone)]
pub(crate) struct Queues {
    /// For pools, and for who waits for them on the way of writing memory back.
    pub(crate) pools: Arc<OwnedQueue>,
    /// For registration queues that follow their address: takes locks of the network stack, whose
    /// holders may be waiting for memory. Nobody waits for that on the way of writing it back.
    pub(crate) paths: Arc<OwnedQueue>,
}

/// The module's workqueues, there from module init to exit.
pub(crate) struct Work;

impl Work {
    /// May sleep.
    pub(crate) fn new() -> Result<Self> {
        let queues = Queues {
            pools: Arc::new(OwnedQueue::new(c"kfi_pools", REFILLS_AT_ONCE)?, GFP_KERNEL)?,
            paths: Arc::new(OwnedQueue::new(c"kfi_paths", LOOKS_AT_ONCE)?, GFP_KERNEL)?,
        };
        *WORK.lock() = Some(queues);
        Ok(Self)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let queues = WORK.lock().take();
        drop(queues);
        // A static is never dropped, and its memory would stay.
        let devices = mem::take(&mut *DEVICES.lock());
        drop(devices);
    }
}

/// The module's workqueues. May sleep.
pub(crate) fn work() -> Option<Queues> {
    WORK.lock().clone()
}

/// A device that can serve.
#[pin_data]
pub(crate) struct Device {
    #[pin]
    state: Mutex<State>,
    /// The task that is calling removal callbacks, or [`NOBODY`].
    caller: Atomic<Pid>,
}

/// No task has this number.
const NOBODY: Pid = 0;

enum State {
    /// It is there. Its open domains are told when it goes.
    Present {
        device: ARef<rdma::Device>,
        domains: KVec<Arc<Link>>,
    },
    /// It went away.
    Gone,
}

impl Device {
    /// The device, unless it went away. May sleep.
    pub(crate) fn get(&self) -> Option<ARef<rdma::Device>> {
        match &*self.state.lock() {
            State::Present { device, .. } => Some(device.clone()),
            State::Gone => None,
        }
    }

    /// Lists a domain to be told of the removal. `ENODEV` if that has happened. May sleep.
    pub(crate) fn add(&self, domain: Arc<Link>) -> Result {
        match &mut *self.state.lock() {
            State::Present { domains, .. } => Ok(domains.push(domain, GFP_KERNEL)?),
            State::Gone => Err(ENODEV),
        }
    }

    /// Takes a domain off the list. May sleep.
    pub(crate) fn remove(&self, domain: &Arc<Link>) {
        if let State::Present { domains, .. } = &mut *self.state.lock() {
            domains.retain(|other| !Arc::ptr_eq(other, domain));
        }
    }
}

/// All devices that are there, or on their way out. May sleep.
pub(crate) fn all() -> Result<KVec<Arc<Device>>> {
    let devices = DEVICES.lock();
    let mut all = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
    for device in devices.iter() {
        all.push(device.clone(), GFP_KERNEL)?;
    }
    Ok(all)
}

/// The device of this name, as it is named now. May sleep.
pub(crate) fn find(name: &CStr) -> Option<Arc<Device>> {
    let devices = DEVICES.lock();
    let named = |device: &&Arc<Device>| {
        let present = device.get();
        present.is_some_and(|present| present.name().as_c_str() == name)
    };
    devices.iter().find(named).cloned()
}

/// Can this device serve? It needs fast registration in pages that make up the machine's, a queue
/// that can be connected to itself, which iWARP has not, and mappings that don't bounce. Says what
/// it lacks.
fn can_serve(device: &rdma::Device, limits: &Limits) -> Result<(), &'static CStr> {
    if !limits.fast_reg || limits.max_fast_reg_pages == 0 {
        return Err(c"it has no fast registration");
    }
    let connects = |port: Port<'_>| {
        let protocol = port.protocol();
        matches!(protocol, Protocol::InfiniBand | Protocol::RoCE)
    };
    if !device.ports().all(connects) {
        return Err(c"it has ports that are neither InfiniBand nor RoCE");
    }
    rdma::dma::check(device)
}

/// Is this task calling the removal callbacks of a device? It must not wait for any callback then:
/// of that device it is the one that would go on, and those of another may wait for it. May sleep.
pub(crate) fn in_callback() -> bool {
    let task = kernel::current!().pid();
    let is_calling = |device: &Arc<Device>| device.caller.load(Relaxed) == task;
    DEVICES.lock().iter().any(is_calling)
}

/// The client of the RDMA core.
pub(crate) struct Verbs;

rdma::impl_client!(Verbs);

impl Client for Verbs {
    const NAME: &'static CStr = c"kfi_verbs";
    type Data = Arc<Device>;

    fn add(device: &rdma::Device) -> Result<Self::Data> {
        // Others wait for the lock, perhaps on the way of writing memory back.
        let _noio = NoIo::enter();
        if let Err(why) = can_serve(device, &device.limits()) {
            pr_info!("{}: can't serve: {}\n", device.name(), why);
            return Err(kfabric::Errno::EOPNOTSUPP.into());
        }
        let present = Arc::pin_init(
            pin_init!(Device {
                state <- new_mutex!(State::Present {
                    device: device.into(),
                    domains: KVec::new(),
                }),
                caller: Atomic::new(NOBODY),
            }),
            GFP_KERNEL,
        )?;
        DEVICES.lock().push(present.clone(), GFP_KERNEL)?;
        pr_info!("{}: ready\n", device.name());
        Ok(present)
    }

    fn remove(device: &rdma::Device, data: Self::Data) {
        // Closes wait for this, perhaps on the way of writing memory back.
        let _noio = NoIo::enter();
        let state = mem::replace(&mut *data.state.lock(), State::Gone);
        if let State::Present { domains, .. } = state {
            link::remove(&domains, |call_back| {
                data.caller.store(kernel::current!().pid(), Relaxed);
                call_back();
                data.caller.store(NOBODY, Relaxed);
            });
        }
        DEVICES.lock().retain(|other| !Arc::ptr_eq(other, &data));
        pr_info!("{}: gone\n", device.name());
    }
}
