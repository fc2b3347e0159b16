// SPDX-License-Identifier: GPL-2.0

//! Gives the core code of its own to call, in safe Rust, and never takes it back: a queue's handler, a
//! provider, and a region that is to be closed, after which the next is left to be closed, and so on.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::{
        Arc,
        SetOnce, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use kfabric::{
    consumer::{
        Access,
        Caps,
        Domain,
        EventHandler,
        EventQueue,
        EventQueueOptions,
        Events,
        Fabric,
        Hints,
        Later,
        Mr,
        MrMode,
        Options, //
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

/// Says that what comes before it has been dropped.
struct Said;

impl Drop for Said {
    fn drop(&mut self) {
        pr_info!("a queue is closed by its own handler\n");
    }
}

/// The handler of a queue that it has itself: nobody else closes that.
struct Cycle {
    _queue: Arc<SetOnce<Arc<EventQueue>>>,
    _said: Said,
}

impl EventHandler for Cycle {
    fn events(&self, _events: Events<'_>) {}
}

impl Cycle {
    fn leave(fabric: &Arc<Fabric>) -> Result {
        let queue = Arc::new(SetOnce::new(), GFP_KERNEL)?;
        let cycle = Self {
            _queue: queue.clone(),
            _said: Said,
        };
        let options = EventQueueOptions::default().handler(KBox::new(cycle, GFP_KERNEL)?);
        queue.populate(EventQueue::open(fabric, options)?);
        Ok(())
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

    fn open_fabric(_name: &CStr) -> Result<KBox<dyn provider::FabricOps>, Refusal> {
        Err(Refusal::new(Errno::ENODEV, c"nothing to open"))
    }
}

/// How many regions are closed one after the other.
const REGIONS: u64 = 12;

/// Regions that are still open.
struct Chain(KVec<Mr<KVec<u8>>>);

impl Chain {
    fn new(domain: &Arc<Domain>) -> Result<Self> {
        let mut regions = KVec::new();
        for key in 0..REGIONS {
            let bytes = KVec::from_elem(0, 100, GFP_KERNEL)?;
            let asked = Options::new(Access::REMOTE_READ).requested_key(key);
            let mr = domain.reg(bytes, asked).map_err(|failed| failed.errno())?;
            regions.push(mr, GFP_KERNEL)?;
        }
        Ok(Self(regions))
    }

    /// Leaves one of them to be closed, slowly, and the others thereafter.
    fn leave(mut self) {
        let Some(mr) = self.0.pop() else {
            return pr_info!("the last region is closed\n");
        };
        let Ok(room) = Later::new() else {
            return pr_err!("no memory\n");
        };
        let left = mr.close_later(room, move |closed| {
            fsleep(Delta::from_millis(20));
            match closed {
                Ok(_) => self.leave(),
                Err(error) => pr_err!("not closed: {}\n", error.errno()),
            }
        });
        if let Err(refused) = left {
            pr_err!("not left: {}\n", refused.errno());
        }
    }
}

/// The module.
struct Forgetful(Chain);

impl Drop for Forgetful {
    fn drop(&mut self) {
        Chain(core::mem::take(&mut self.0 .0)).leave();
    }
}

impl kernel::Module for Forgetful {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let offers = Hints::new()?
            .prov_name(c"loop")?
            .caps(Caps::RMA)
            .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
            .getinfo()?;
        let fabric = Fabric::open(offers.first())?;
        let domain = Domain::open(&fabric, offers.first())?;
        let this = Self(Chain::new(&domain)?);
        let handler = KBox::new(Handler, GFP_KERNEL)?;
        let options = EventQueueOptions::default().writable().handler(handler);
        kfi_keeper::keep(EventQueue::open(&fabric, options)?);
        Cycle::leave(&fabric)?;
        core::mem::forget(Registration::<Provider>::new()?);
        let seen = Hints::new()?.prov_name(c"forgotten")?.getinfo()?;
        pr_info!("{} offers\n", seen.iter().count());
        match fails() {
            false => Ok(this),
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
