// SPDX-License-Identifier: GPL-2.0

//! Gives the core code of its own to call, in safe Rust, and never takes it back: a queue's handler,
//! and a provider.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::{
        CStr,
        CString, //
    }, //
};
use kfabric::{
    consumer::{
        Caps,
        EventHandler,
        EventQueue,
        EventQueueOptions,
        Events,
        Fabric,
        Hints,
        MrMode, //
    },
    provider,
    Ends,
    Errno,
    Extras,
    Offer,
    Refusal,
    Registration, //
};

module! {
    type: Forgetful,
    name: "kfi_forgetful",
    authors: ["kfabric developers"],
    description: "kfabric selftest: goes and leaves a handler and a provider",
    license: "GPL",
    params: {
        fail: u8 {
            default: 0,
            description: "1: loading fails when all was given away",
        },
    },
}

struct Handler;

impl EventHandler for Handler {
    fn events(&self, events: Events<'_>) {
        while let Ok(Some(_)) = events.read() {}
        pr_info!("handler called\n");
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        pr_info!("handler dropped\n");
    }
}

struct Provider;

impl provider::Provider for Provider {
    const NAME: &'static CStr = c"forgotten";
    const VERSION: u32 = 1 << 16;

    fn offers(_ends: &Ends) -> Result<KVec<Offer>, Errno> {
        let name = || CString::try_from_fmt(fmt!("forgotten")).map_err(|_| Errno::ENOMEM);
        let offer = Offer {
            fabric: name()?,
            domain: name()?,
            caps: 0,
            mr_mode: 0,
            mr_key_size: 8,
            mr_iov_limit: 1,
            mr_cnt: 1,
            extras: Extras::default(),
            msg: None,
        };
        let mut offers = KVec::new();
        offers.push(offer, GFP_KERNEL)?;
        Ok(offers)
    }

    fn open_fabric(_name: &CStr) -> Result<KBox<dyn provider::Fabric>, Refusal> {
        Err(Refusal::new(Errno::ENODEV, c"nothing to open"))
    }
}

/// The module.
struct Forgetful;

impl kernel::Module for Forgetful {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let offers = Hints::new()?
            .prov_name(c"loop")?
            .caps(Caps::RMA)
            .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
            .getinfo()?;
        let fabric = Fabric::open(offers.first())?;
        let handler = KBox::new(Handler, GFP_KERNEL)?;
        let options = EventQueueOptions::default().writable().handler(handler);
        kfi_keeper::keep(EventQueue::open(&fabric, options)?);
        core::mem::forget(Registration::<Provider>::new()?);
        let seen = Hints::new()?.prov_name(c"forgotten")?.getinfo()?;
        pr_info!("{} offers\n", seen.iter().count());
        match fails() {
            false => Ok(Self),
            true => Err(EIO),
        }
    }
}

// The kernel's parameters changed with 7.3.
#[cfg(kernel_7_3)]
fn fails() -> bool {
    module_parameters::fail.value() != 0
}

#[cfg(not(kernel_7_3))]
fn fails() -> bool {
    *module_parameters::fail.value() != 0
}
