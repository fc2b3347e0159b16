// SPDX-License-Identifier: GPL-2.0

//! kfabric: one fabric API for kernel code over many providers.
//!
//! This is the core. It owns the C objects of the API in `include/`, parses consumers' arguments,
//! and dispatches to providers. It knows providers by the traits in [`provider`] only.
//!
//! # Contexts
//!
//! Every function that C calls, and every one that a provider implements, says in which context:
//!
//! - "May sleep", "Sleeps until …": process context, without spinlocks. An allocation doesn't wait
//!   for I/O: the functions that C calls enter a scope of [`NoIo`], in which they call the
//!   provider.
//! - "Any context": also softirq and interrupt handlers, with locks held and interrupts off, but not
//!   an interrupt that can't be masked. It doesn't sleep, and takes no lock that somebody sleeps with.
//!   No scope has been entered: what it allocates, it allocates without waiting.

mod api;
pub mod consumer;
mod object;
mod post;
pub mod provider;
mod region;
mod support;
mod unload;

pub use crate::{
    api::answer::Registration,
    object::{
        domain,
        ep,
        ext::MappedKeys,
        mr, //
    },
    post::{
        injected::InjectCopy,
        local::{
            LocalPiece,
            LocalPieces,
            LocalRules,
            MAX_INJECT, //
        },
        Atomics,
        LocalMemory,
        Op,
        PostFlags,
        RemoteMemory,
        TransferRequest,
        MAX_REMOTE, //
    },
    provider::{
        cntr::CntrCore,
        domain::{
            Extension,
            ExtensionTable, //
        },
        ep::{
            EpCore,
            EpPart, //
        },
        fabric::{
            Ends,
            Extras,
            MsgOffer,
            Offer, //
        },
        DomainRequest, //
    },
    region::{
        access::Access,
        cpu_memory::{
            self,
            AtomicOp, //
        },
        extents::{
            Extent,
            Extents,
            MappedAs, //
        },
        limits::MrLimits,
        rawkey::{
            raw_key_size,
            RemotePiece,
            MAX_PIECES, //
        },
        request::MrRequest,
        segment_list::{
            PlainList,
            SegmentList,
            Source, //
        },
        shape::{
            AddrRange,
            Piece,
            Shape, //
        }, //
    },
    support::{
        cache::{
            ListVec,
            MrExtBox,
            MrExtMemory,
            RARE_SIZE, //
        },
        child_list::ChildList,
        errno::Errno,
        gate,
        irqlock,
        num,
        prelude,
        random,
        refusal::Refusal,
        slow_wait::SlowWait,
        strings::API_VERSION,
        task::NoIo,
        trace,
        vec::{
            self,
            PushReserved, //
        },
        workqueue, //
    }, //
};
use crate::{
    api::{
        guard,
        registry, //
    },
    object::{
        ext,
        instances,
        listing::Family,
        mr::reference::OBJECT_SIZE,
        pep::requests, //
    },
    support::{
        cache,
        module,
        slow_wait::CloseWatch, //
    }, //
};
use kernel::prelude::*;

module! {
    type: Core,
    name: "kfabric",
    authors: ["kfabric developers"],
    description: "Kernel fabric interfaces",
    license: "GPL",
}

struct Core {
    // Dropped first: calls of user space use the parts.
    _family: Family,
    // Dropped before the parts: the check lists objects.
    _closes: CloseWatch,
    // While modules are watched, a module that goes uses the parts.
    _modules: unload::Watch,
    _parts: Parts,
}

/// The workqueues, caches and lists of the core.
struct Parts(());

impl kernel::Module for Core {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // SAFETY: First of all, and once.
        unsafe {
            registry::init();
            guard::init();
            ext::init();
            requests::init();
            instances::init();
            module::init();
            consumer::init();
        }
        // SAFETY: `init` runs once, and nobody can call in before it has returned.
        let parts = unsafe { Parts::new() }?;
        // Last: the notifier of modules and user space call functions that use the parts.
        let modules = unload::Watch::new()?;
        Ok(Core {
            _family: Family::new()?,
            _closes: CloseWatch::new(),
            _modules: modules,
            _parts: parts,
        })
    }
}

impl Parts {
    /// Makes the workqueues and caches. May sleep.
    ///
    /// # Safety
    ///
    /// Called once, before anybody can use them.
    unsafe fn new() -> Result<Self> {
        // SAFETY: The module's init calls this once, before anybody can call in. If there are no workqueues, the
        // caches are freed again.
        unsafe {
            cache::init(OBJECT_SIZE)?;
            workqueue::init().inspect_err(|_| cache::exit())?;
        }
        Ok(Self(()))
    }
}

impl Drop for Parts {
    /// Frees them. Sleeps until all work has ended.
    fn drop(&mut self) {
        // SAFETY: No object is open, nobody can call in, and the core doesn't watch for modules
        // that go. The targets of work items are freed after the work has ended.
        unsafe {
            workqueue::exit();
            cache::exit();
        }
        consumer::exit();
        requests::exit();
        instances::exit();
        registry::exit();
    }
}
