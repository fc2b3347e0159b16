// SPDX-License-Identifier: GPL-2.0

//! The removal of a device, and the link between it and an open domain. Either may end first.
//!
//! A domain may be closed while its device is removed. A removal callback may close other domains,
//! of this device or of another one that is being removed. So the removal holds nothing of a domain
//! while it runs callbacks or waits for consumers. It leaves the gate between its steps, and a
//! concurrent close continues in its place. No callback waits for another callback.
//!
//! Lock order: the gate's lock, then that of the callbacks.

use crate::{
    mode::Mode,
    pool::PoolCounters,
    prelude::*,
    removal_callbacks::Callbacks,
    work::Queues, //
};
use kernel::str::BStr;
use kfabric::{
    gate::PerCpu,
    ChildList,
    DomainRequest,
    SlowWait, //
};
use rdma::Others;

/// The gate in front of it. Every registration of the domain goes through it several times, and it
/// is shut once.
pub(crate) type ResourcesGate = Gate<Pin<KBox<Resources>>, PerCpu>;

/// An open domain and its device.
#[pin_data]
pub(crate) struct Link {
    /// The gate for all uses of the device.
    #[pin]
    pub(crate) gate: ResourcesGate,
    /// The counters of the domain's pool, which remain after the removal of the device.
    pub(crate) pool_count: Arc<PoolCounters>,
    /// All that is open in the domain.
    children: Arc<ChildList>,
    #[pin]
    pub(crate) callbacks: Callbacks,
    /// The device, until the removal callbacks have returned: they undo mappings.
    #[pin]
    device: Mutex<Option<ARef<rdma::Device>>>,
    /// The last user who took the protection domain.
    #[pin]
    holder: Mutex<Option<PdHolder>>,
    pub(crate) mr_limits: MrLimits,
    pub(crate) mode: Mode,
}

impl Link {
    /// Sets up the resources of a domain. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENETDOWN` without an active port.
    /// - The error of the driver.
    pub(crate) fn new(
        device: &ARef<rdma::Device>,
        work: Queues,
        mode: Mode,
        atomics: bool,
        request: &DomainRequest<'_>,
    ) -> Result<Arc<Self>> {
        let resources = Resources::new(device, work, mode, atomics, request.label)?;
        let mr_limits = MrLimits {
            refresh: rxe::allows_refresh(resources.fence, resources.invalidates),
            by_entries: device.is_software(),
            ..mode.limits(&device.limits())
        };
        Arc::pin_init(
            try_pin_init!(Self {
                pool_count: resources.pool.count.clone(),
                gate <- Gate::new(resources),
                children: request.children.clone(),
                callbacks <- Callbacks::new(),
                device <- new_mutex!(Some(device.clone())),
                holder <- new_mutex!(None),
                mr_limits,
                mode,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Returns the device, until its removal callbacks have returned. May sleep, but not for long.
    pub(crate) fn device(&self) -> Option<ARef<rdma::Device>> {
        self.device.lock().clone()
    }

    /// Does something with the device, whose removal waits until `f` has returned; nothing if it
    /// is gone. `f` mustn't sleep. May sleep, but not for long.
    pub(crate) fn with_device(&self, f: impl FnOnce(&rdma::Device)) {
        if let Some(device) = &*self.device.lock() {
            f(device);
        }
    }

    /// Notes that a consumer takes the protection domain. Warns if it has no callback that tells
    /// when to return it. May sleep, but not for long.
    pub(crate) fn pd_taken(&self, holder: PdHolder) {
        if self.callbacks.is_empty() {
            if let Some(device) = self.device() {
                holder.warn(
                    &device,
                    "removal will wait, for want of on_removal, for who took a protection domain:",
                );
            }
        }
        *self.holder.lock() = Some(holder);
    }
}

/// The name of a function that took a protection domain.
#[derive(Clone, Copy)]
pub(crate) struct PdHolder {
    name: [u8; ROOM],
    len: usize,
}

const ROOM: usize = num::index(kfi_bindings::KFI_VERBS_CALLER_MAX);

impl PdHolder {
    /// Copies the name of a function.
    pub(crate) fn new(name: &CStr) -> Self {
        let name = name.to_bytes();
        let mut holder = Self {
            name: [0; ROOM],
            len: name.len().min(ROOM),
        };
        for (to, from) in holder.name.iter_mut().zip(name) {
            *to = *from;
        }
        holder
    }

    /// Logs a message that ends with the name. Any context.
    pub(crate) fn warn(&self, device: &rdma::Device, what: &str) {
        let holder = BStr::from_bytes(self.name.get(..self.len).unwrap_or(&[]));
        pr_warn!("{}: {what} {holder}\n", device.name());
    }
}

/// Why a domain can't be closed now.
enum Busy {
    /// Number of other users' objects on the protection domain.
    Foreign(usize),
    /// Objects of its own are being destroyed on its protection domain, which may be others' for all that is known.
    Unsettled,
    /// Its removal callbacks are being called.
    CallingBack,
}

impl From<Busy> for Refusal {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Foreign(users) => Self::new(Errno::EBUSY, c"others use the protection domain")
                .value(num::widen(users)),
            Busy::Unsettled => Self::new(
                Errno::EBUSY,
                c"objects of the domain are just being destroyed",
            ),
            Busy::CallingBack => Self::new(
                Errno::EBUSY,
                c"closed in a removal callback, while those of the domain are called",
            ),
        }
    }
}

/// Fails if others have objects on the protection domain. Doesn't sleep.
fn check_unused(resources: &Resources) -> Result<(), Busy> {
    match resources.pd.others() {
        Others::None => Ok(()),
        Others::Some(users) => Err(Busy::Foreign(users)),
        Others::Unsettled => Err(Busy::Unsettled),
    }
}

/// Waits until no own object is being destroyed, then does [`check_unused`]. Sleeps.
fn wait_unused(resources: &Resources) -> Result<(), Busy> {
    loop {
        match check_unused(resources) {
            Err(Busy::Unsettled) => fsleep(A_MOMENT),
            checked => return checked,
        }
    }
}

impl Link {
    /// Closes the domain, which has no regions. Sleeps; if removal callbacks of the domain are
    /// being called, until they have returned.
    ///
    /// # Errors
    ///
    /// `EBUSY` if others have objects on the protection domain, or if this would wait for
    /// callbacks while it is `in_callback`; nothing has happened then.
    pub(crate) fn close(&self, in_callback: bool) -> Result<(), Refusal> {
        if let Some(inside) = self.gate.enter() {
            let resources = inside.get();
            resources.settle();
            // An event may have had our queue pair replaced since: one that is just being made
            // counts as others' until it is there.
            wait_unused(resources).or_else(|_| {
                resources.settle();
                wait_unused(resources)
            })?;
        }
        if let Some(shut) = self.gate.shut() {
            *self.device.lock() = None;
            shut.drain().take_away();
            return Ok(());
        }
        loop {
            let taken = self.gate.take_over(|resources| {
                check_unused(resources)?;
                // They begin and end in turns with this, by the gate.
                if self.callbacks.are_running() {
                    Err(Busy::CallingBack)
                } else {
                    Ok(())
                }
            });
            match taken {
                Ok(Some(shut)) => {
                    *self.device.lock() = None;
                    shut.get().pool.close();
                    shut.drain().take_away();
                    return Ok(());
                }
                Ok(None) => return Ok(()),
                Err(Busy::CallingBack) if !in_callback => self.callbacks.wait_returned(),
                // A failure of an object that ends by itself does not keep the domain open.
                Err(Busy::Unsettled) => fsleep(A_MOMENT),
                Err(busy) => return Err(busy.into()),
            }
        }
    }

    /// Shuts the gate for the removal of the device. Sleeps until all users have left.
    fn shut(&self) {
        if let Some(shut) = self.gate.shut() {
            if let Some(queue) = &shut.get().queue {
                queue.die();
            }
            let drained = shut.drain();
            // From here on all objects that aren't counted as ours are others'.
            drained.get().settle();
            drained.leave();
        }
    }

    /// Calls the removal callbacks of the domain. Sleeps as they do.
    fn call_back(&self) {
        let Some(shut) = self.gate.resume() else {
            // The domain is being closed.
            return;
        };
        self.callbacks.begin();
        shut.leave();
        self.callbacks.run();
        *self.device.lock() = None;
    }

    /// Ends all that is open in the domain. Sleeps until no peer can reach anything.
    fn end_objects(&self) {
        if let Some(shut) = self.gate.resume() {
            self.children.end();
            shut.get().pool.close();
            shut.leave();
        }
    }

    /// Frees the domain's resources on the device. Sleeps as long as others use the protection
    /// domain. If the domain was being closed before, sleeps until it is closed.
    fn take_away(&self) {
        let mut waits = 0;
        while let Some(shut) = self.gate.resume() {
            if shut.get().pd.foreign_users() == 0 {
                return shut.drain().take_away();
            }
            // The first one may just be on its way out.
            if waits % WAITS_PER_MESSAGE == 1 {
                let pd = &shut.get().pd;
                let (name, users) = (pd.device().name(), pd.foreign_users());
                pr_warn!("{name}: removal waits for {users} objects that others have on a protection domain\n");
                if let Some(holder) = &*self.holder.lock() {
                    holder.warn(pd.device(), "the protection domain was last taken by");
                }
            }
            // A concurrent close returns after this.
            shut.leave();
            fsleep(WAIT);
            waits += 1;
        }
        self.gate.wait_gone();
    }
}

/// How long to sleep while objects are being destroyed.
const A_MOMENT: Delta = Delta::from_millis(1);

/// How long to sleep between looks at a protection domain that others use.
const WAIT: Delta = Delta::from_millis(50);

/// Number of these intervals between two messages in the log.
const WAITS_PER_MESSAGE: u32 = 200;

/// Ends the use that domains make of a device that is being removed. Sleeps until that is done.
///
/// Carries out each step for all domains before the next step, for two reasons:
///
/// - A callback may close another domain, or free an object that another domain's callback waits
///   for.
/// - If a consumer keeps objects on one domain, that must neither delay the callbacks of other
///   domains, nor keep their regions open.
pub(crate) fn remove(domains: &[Arc<Link>], calling_back: impl FnOnce(&dyn Fn())) {
    let _wait = SlowWait::begin(c"removing an RDMA device");
    domains.iter().for_each(|domain| domain.shut());
    calling_back(&|| domains.iter().for_each(|domain| domain.call_back()));
    domains.iter().for_each(|domain| domain.end_objects());
    domains.iter().for_each(|domain| domain.take_away());
}
