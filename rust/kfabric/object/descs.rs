// SPDX-License-Identifier: GPL-2.0

//! From the descriptors that regions of a domain have, back to the regions.
//!
//! A descriptor is a number of the provider's; verbs' is the lkey, which consumers use in work
//! requests of their own. So it can't be a pointer to anything of the core's. Calls of the data path
//! look it up, in any context. There are many chains, and a lock for some of them: two CPUs meet if
//! they look for the same region.
//!
//! Lock order: the locks are leaves.

mod kunit;

use crate::{
    new_irq_lock,
    post::described::Described,
    region::access::Access,
    support::{
        hlist::{
            Head,
            Node, //
        },
        irqlock::IrqLock, //
    }, //
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// As powers of two: how many locks there are, and how many chains to each.
const LOCKS_BITS: u32 = 6;
const CHAINS_BITS: u32 = 6;

/// What a region is to be found by, as a part of it.
///
/// # Invariants
///
/// `desc` isn't 0 if, and only if, it is in the table of the region's domain.
pub(crate) struct Local {
    node: Node,
    desc: Atomic<usize>,
    base: Atomic<u64>,
    /// Where its first byte is for the kernel; 0 if it isn't one range of addresses there.
    start: u64,
    /// How many bytes the region has.
    pub(crate) len: u64,
    /// What may be done with the region.
    pub(crate) access: Access,
    whole: Atomic<bool>,
}

// There is one in each region.
const _: () = assert!(size_of::<Local>() <= 56);

impl Local {
    /// Of a region that is not found yet. `start` is 0 if it isn't one range of the kernel's addresses.
    pub(crate) fn new(start: u64, len: u64, access: Access) -> Self {
        // INVARIANT: In no table.
        Self {
            node: Node::new(),
            desc: Atomic::new(0),
            base: Atomic::new(0),
            start,
            len,
            access,
            whole: Atomic::new(false),
        }
    }

    /// Where its first byte is for the kernel, if it is one range of addresses there.
    pub(crate) fn start(&self) -> Option<u64> {
        Some(self.start).filter(|&start| start != 0)
    }

    fn region(&self) -> Described {
        Described {
            start: self.start(),
            base: self.base.load(Relaxed),
            len: self.len,
            access: self.access,
            whole: self.whole.load(Relaxed),
        }
    }
}

/// The regions of a domain that have descriptors.
#[pin_data]
pub(crate) struct Descs {
    #[pin]
    parts: [Part; 1 << LOCKS_BITS],
}

#[pin_data]
struct Part {
    #[pin]
    chains: IrqLock<Chains>,
}

/// # Invariants
///
/// Each chain consists of nodes of [`Local`]s that were [inserted](Descs::insert) by descriptors of
/// this chain, and not removed.
struct Chains([Head; 1 << CHAINS_BITS]);

// SAFETY: Any thread may have the lock, and use what it guards.
unsafe impl Send for Chains {}

impl Descs {
    /// Makes an empty table. May sleep.
    pub(crate) fn new() -> Result<Pin<KVBox<Self>>> {
        let part = |_| {
            pin_init!(Part {
                // INVARIANT: Nothing was inserted.
                chains <- new_irq_lock!(
                    Chains([ptr::null_mut(); 1 << CHAINS_BITS]),
                    c"kfabric_descs"
                ),
            })
        };
        KVBox::pin_init(
            pin_init!(Self {
                parts <- pin_init::pin_init_array_from_fn(part),
            }),
            GFP_KERNEL,
        )
    }

    /// Does something with the chain of a descriptor, under its lock.
    fn with<R>(&self, desc: usize, f: impl FnOnce(&mut Head) -> R) -> Option<R> {
        // Neighbours are spread, and what comes from the same device region, too.
        const GOLDEN: usize = 0x9e37_79b9_7f4a_7c15;
        let hash = desc.wrapping_mul(GOLDEN) >> (usize::BITS - LOCKS_BITS - CHAINS_BITS);
        let part = self.parts.get(hash >> CHAINS_BITS)?;
        part.chains.with(|chains| {
            let chain = chains.0.get_mut(hash % (1 << CHAINS_BITS))?;
            Some(f(chain))
        })
    }

    /// Returns the region that has a descriptor, if one of this domain has. Any context.
    pub(crate) fn find(&self, desc: usize) -> Option<Described> {
        self.with(desc, |chain| {
            let mut node = *chain;
            // SAFETY: Null or in the chain by the invariant, whose lock is held.
            while let Some(here) = unsafe { node.as_ref() } {
                // SAFETY: The node is that of a `Local` by the invariant, which stays in the chain.
                let local = unsafe { &*kernel::container_of!(node, Local, node) };
                if local.desc.load(Relaxed) == desc {
                    return Some(local.region());
                }
                // SAFETY: In the chain, whose lock is held.
                node = unsafe { here.next() };
            }
            None
        })?
    }

    /// Lets a region be found by its descriptor, unless that is 0. Any context.
    ///
    /// # Safety
    ///
    /// `local` was not inserted, and doesn't move before it is [removed](Self::remove).
    pub(crate) unsafe fn insert(&self, local: &Local, desc: usize, base: u64, whole: bool) {
        if desc == 0 {
            return;
        }
        self.with(desc, |chain| {
            local.base.store(base, Relaxed);
            local.whole.store(whole, Relaxed);
            // INVARIANT: Both under the lock.
            local.desc.store(desc, Relaxed);
            // SAFETY: The lock is held; by the requirements of this function, in no chain, and it
            // stays where it is.
            unsafe { local.node.link(chain) };
        });
    }

    /// Lets a region not be found any more, if it could be. Any context.
    ///
    /// # Safety
    ///
    /// If it was inserted, then in this table. Nobody else inserts or removes it meanwhile.
    pub(crate) unsafe fn remove(&self, local: &Local) {
        let desc = local.desc.load(Relaxed);
        if desc == 0 {
            return;
        }
        self.with(desc, |_| {
            // SAFETY: In a chain by the invariant, whose lock is held.
            unsafe { local.node.unlink() };
            // INVARIANT: Both under the lock.
            local.desc.store(0, Relaxed);
        });
    }
}
