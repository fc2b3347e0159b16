// SPDX-License-Identifier: GPL-2.0

//! The link between an open domain and its device. Either may end first.

pub(crate) mod removal;

use kernel::{
    new_mutex,
    prelude::*,
    str::BStr,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    }, //
};

use kfabric::{
    gate::{
        Gate,
        PerCpu, //
    },
    num,
    ChildList,
    MrLimits, //
};

use crate::{
    mode::Mode,
    removal_callbacks::{
        Callbacks,
        OnRemoval, //
    },
    resources::Resources,
    rxe,
    work::Queues, //
};

/// The gate in front of it. Every registration of the domain goes through it several times, and it
/// is shut once.
pub(crate) type ResourcesGate = Gate<Pin<KBox<Resources>>, PerCpu>;

/// An open domain and its device.
#[pin_data]
pub(crate) struct Link {
    #[pin]
    gate: ResourcesGate,
    /// All that is open in the domain.
    children: Arc<ChildList>,
    #[pin]
    callbacks: Callbacks<OnRemoval>,
    /// The device, until the removal callbacks have returned: they undo mappings.
    #[pin]
    device: Mutex<Option<ARef<rdma::Device>>>,
    /// The last user who took the protection domain.
    #[pin]
    holder: Mutex<Option<PdHolder>>,
    mr_limits: MrLimits,
    mode: Mode,
}

impl Link {
    /// Sets up what a domain needs. May sleep.
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
        children: Arc<ChildList>,
    ) -> Result<Arc<Self>> {
        let resources = Resources::new(device, work, mode, atomics)?;
        let mr_limits = MrLimits {
            refresh: rxe::allows_refresh(resources.fence(), resources.invalidates()),
            by_entries: device.is_software(),
            ..mode.limits(&device.limits())
        };
        Arc::pin_init(
            try_pin_init!(Self {
                gate <- Gate::new(resources),
                children,
                callbacks <- Callbacks::new(),
                device <- new_mutex!(Some(device.clone())),
                holder <- new_mutex!(None),
                mr_limits,
                mode,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Returns the gate for all uses of the device. Any context.
    pub(crate) fn gate(&self) -> &ResourcesGate {
        &self.gate
    }

    pub(crate) fn mr_limits(&self) -> &MrLimits {
        &self.mr_limits
    }

    /// Returns the mode of the domain.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn callbacks(&self) -> &Callbacks<OnRemoval> {
        &self.callbacks
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
