// SPDX-License-Identifier: GPL-2.0

//! The devices that can serve, and the domains that are open on each.
//!
//! Lock order: `DEVICES`, then a device's `state`. Neither is held while a domain goes away.

use crate::{
    prelude::*, //
    removal,
};
use kernel::task::Pid;
use rdma::{
    client::Client,
    port::{
        Port,
        Protocol, //
    }, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `List::new`, which the module calls first.
    unsafe(uninit) static DEVICES: Mutex<KVec<Arc<Device>>> = KVec::new();
}

/// The list of devices, there from module init to exit.
pub(crate) struct List;

impl List {
    /// Makes an empty list.
    ///
    /// # Safety
    ///
    /// Called once, before anything else of this file.
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: This is the only call by the function's contract, so `DEVICES` is uninitialized
        // and unlocked.
        unsafe { DEVICES.init() };
        Self
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // A static is never dropped, and its memory would stay.
        let devices = mem::take(&mut *DEVICES.lock());
        drop(devices);
    }
}

/// Something on a device that goes when the device does.
pub(crate) trait Guest: Send + Sync {
    /// Ends the guest, because the device is removed. Sleeps until nothing is left on the device.
    fn leave(&self);
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
    /// Present. Its domains and guests are ended when it is removed.
    Present {
        device: ARef<rdma::Device>,
        domains: KVec<Arc<Link>>,
        guests: KVVec<Arc<dyn Guest>>,
    },
    /// Removed.
    Gone,
}

impl Device {
    /// Puts a device that has come on the list. May sleep.
    pub(crate) fn list(device: &rdma::Device) -> Result<Arc<Self>> {
        let this = Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(State::Present {
                    device: device.into(),
                    domains: KVec::new(),
                    guests: KVVec::new(),
                }),
                caller: Atomic::new(NOBODY),
            }),
            GFP_KERNEL,
        )?;
        DEVICES.lock().push(this.clone(), GFP_KERNEL)?;
        Ok(this)
    }

    /// Lists a guest to be told of the removal. `ENODEV` if that has happened. May sleep.
    pub(crate) fn admit(&self, guest: Arc<dyn Guest>) -> Result {
        match &mut *self.state.lock() {
            State::Present { guests, .. } => Ok(guests.push(guest, GFP_KERNEL)?),
            State::Gone => Err(ENODEV),
        }
    }

    /// Takes a guest off the list. May sleep.
    pub(crate) fn dismiss(&self, guest: &dyn Guest) {
        if let State::Present { guests, .. } = &mut *self.state.lock() {
            guests.retain(|other| !ptr::addr_eq(Arc::as_ptr(other), guest));
        }
    }

    /// Has this task call removal callbacks; [`in_callback`] tells meanwhile. Sleeps as they do.
    pub(crate) fn call_back(&self, callbacks: &dyn Fn()) {
        self.caller.store(kernel::current!().pid(), Relaxed);
        callbacks();
        self.caller.store(NOBODY, Relaxed);
    }

    /// Returns the device, or [`None`] if it is removed. May sleep.
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

/// Returns all devices that are present or being removed. May sleep.
pub(crate) fn all() -> Result<KVec<Arc<Device>>> {
    let devices = DEVICES.lock();
    let mut all = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
    for device in devices.iter() {
        all.push(device.clone(), GFP_KERNEL)?;
    }
    Ok(all)
}

/// Returns the device that currently has this name. May sleep.
pub(crate) fn find(name: &CStr) -> Option<Arc<Device>> {
    let devices = DEVICES.lock();
    let named = |device: &&Arc<Device>| {
        let present = device.get();
        present.is_some_and(|present| present.name().as_c_str() == name)
    };
    devices.iter().find(named).cloned()
}

/// Returns the device for a device of the RDMA core. May sleep.
pub(crate) fn of(device: &rdma::Device) -> Option<Arc<Device>> {
    let devices = DEVICES.lock();
    let same = |one: &&Arc<Device>| one.get().is_some_and(|present| present.is_same(device));
    devices.iter().find(same).cloned()
}

/// Returns whether this task is calling the removal callbacks of a device. It must not wait for any callback then:
/// of that device it is the one that would go on, and those of another may wait for it. May sleep.
pub(crate) fn in_callback() -> bool {
    let task = kernel::current!().pid();
    let is_calling = |device: &Arc<Device>| device.caller.load(Relaxed) == task;
    DEVICES.lock().iter().any(is_calling)
}

/// The client of the RDMA core.
pub(crate) struct Watcher;

rdma::impl_client!(Watcher);

impl Client for Watcher {
    const NAME: &'static CStr = c"kfi_verbs";
    type Data = Arc<Device>;

    fn add(device: &rdma::Device) -> Result<Self::Data> {
        // Others wait for the lock, perhaps on the way of writing memory back.
        let _noio = NoIo::enter();
        if let Err(why) = can_serve(device, &device.limits()) {
            pr_info!("{}: can't serve: {}\n", device.name(), why);
            return Err(kfabric::Errno::EOPNOTSUPP.into());
        }
        let present = Device::list(device)?;
        pr_info!("{}: ready\n", device.name());
        Ok(present)
    }

    fn remove(device: &rdma::Device, data: Self::Data) {
        // Closes wait for this, perhaps on the way of writing memory back.
        let _noio = NoIo::enter();
        let state = mem::replace(&mut *data.state.lock(), State::Gone);
        if let State::Present {
            domains, guests, ..
        } = state
        {
            // Listeners and requests go before the domains, so that no connection begins any more.
            guests.iter().for_each(|guest| guest.leave());
            removal::remove(&domains, |call_back| data.call_back(call_back));
        }
        DEVICES.lock().retain(|other| !Arc::ptr_eq(other, &data));
        pr_info!("{}: gone\n", device.name());
    }
}

/// Checks whether a device can serve, or returns the reason why not. It needs
///
/// - fast registration in pages that make up the machine's;
/// - ports of a known kind;
/// - mappings that are not bounced;
/// - a fence, which siw does not have.
fn can_serve(device: &rdma::Device, limits: &Limits) -> Result<(), &'static CStr> {
    if !limits.fast_reg || limits.max_fast_reg_pages == 0 {
        return Err(c"it has no fast registration");
    }
    let connects = |port: Port<'_>| {
        let protocol = port.protocol();
        protocol != Protocol::Other
    };
    if !device.ports().all(connects) {
        return Err(c"it has ports that are neither InfiniBand nor RoCE nor iWARP");
    }
    if device.is_software() && !device.connects_freely() && !crate::params::weak_fence() {
        return Err(
            c"siw isn't done with memory that it has let go of: for tests, with weak_fence=1",
        );
    }
    rdma::dma::check(device)
}
