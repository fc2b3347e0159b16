// SPDX-License-Identifier: GPL-2.0

//! The hash table from local descriptors to the regions of a domain.
//!
//! A descriptor is a number of the provider. Verbs use the lkey, which consumers also use in their own work
//! requests, so the core can't choose it. Calls of the data path look descriptors up in any context. Each lock
//! guards a few chains, so that CPUs seldom contend for a lock.
//!
//! Lock order: the locks are leaves.

use super::prelude::*;
use crate::region::access::Access;
use core::cell::UnsafeCell;

/// The binary logarithm of the number of locks, and of the number of chains of a lock.
const LOCKS_BITS: u32 = 6;
const CHAINS_BITS: u32 = 6;

/// The entry of a region in the table.
///
/// # Invariants
///
/// `desc` is not 0 if and only if the entry is in the table of the region's domain.
pub(crate) struct DescEntry {
    /// The next entry of the chain, under the lock of the chain.
    next: UnsafeCell<Link>,
    desc: Atomic<usize>,
    base: Atomic<u64>,
    /// The kernel address of the first byte, or 0 if the region is not contiguous in kernel addresses.
    start: u64,
    /// The length in bytes.
    pub(crate) len: u64,
    /// The permitted accesses.
    pub(crate) access: Access,
    whole: Atomic<bool>,
}

// There is one in each region.
const _: () = assert!(size_of::<DescEntry>() <= 48);

// SAFETY: `next` is only used under the lock of the chain, and all other fields are `Send`.
unsafe impl Send for DescEntry {}
// SAFETY: `next` is only used under the lock of the chain, and all other fields are `Sync`.
unsafe impl Sync for DescEntry {}

/// An entry of a chain, or null at its end. Chains are singly linked, to save a word in each region.
type Link = *const DescEntry;

impl DescEntry {
    /// Creates an entry outside of the table. `start` is 0 if the region is not contiguous in kernel addresses.
    pub(crate) fn new(start: u64, len: u64, access: Access) -> Self {
        // INVARIANT: The entry is in no table.
        Self {
            next: UnsafeCell::new(ptr::null()),
            desc: Atomic::new(0),
            base: Atomic::new(0),
            start,
            len,
            access,
            whole: Atomic::new(false),
        }
    }

    /// Returns the kernel address of the first byte, if the region is contiguous in kernel addresses.
    pub(crate) fn start(&self) -> Option<u64> {
        Some(self.start).filter(|&start| start != 0)
    }

    fn region(&self) -> DescMr {
        DescMr {
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
/// Each chain consists of [`DescEntry`]s that were [inserted](Descs::insert) by descriptors of
/// this chain, and not removed.
struct Chains([Link; 1 << CHAINS_BITS]);

// SAFETY: Any thread may have the lock, and use what it guards.
unsafe impl Send for Chains {}

impl Descs {
    /// Makes an empty table. May sleep.
    pub(crate) fn new() -> Result<Pin<KVBox<Self>>> {
        let part = |_| {
            pin_init!(Part {
                // INVARIANT: Nothing was inserted.
                chains <- new_irq_lock!(
                    Chains([ptr::null(); 1 << CHAINS_BITS]),
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
    fn with<R>(&self, desc: usize, f: impl FnOnce(&mut Link) -> R) -> Option<R> {
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
    pub(crate) fn find(&self, desc: usize) -> Option<DescMr> {
        self.with(desc, |chain| {
            let mut link = *chain;
            // SAFETY: Null or in the chain by the invariant, whose lock is held.
            while let Some(local) = unsafe { link.as_ref() } {
                if local.desc.load(Relaxed) == desc {
                    return Some(local.region());
                }
                // SAFETY: Under the lock of the chain that it is in.
                link = unsafe { *local.next.get() };
            }
            None
        })?
    }

    /// Lets a region be found by its descriptor, unless that is 0. Any context.
    ///
    /// # Safety
    ///
    /// `local` was not inserted, and doesn't move before it is [removed](Self::remove).
    pub(crate) unsafe fn insert(&self, local: &DescEntry, desc: usize, base: u64, whole: bool) {
        if desc == 0 {
            return;
        }
        self.with(desc, |chain| {
            local.base.store(base, Relaxed);
            local.whole.store(whole, Relaxed);
            // INVARIANT: Both under the lock.
            local.desc.store(desc, Relaxed);
            // SAFETY: `local` was not inserted, as the caller promises. So it is in no chain, and
            // nobody else uses `next`.
            unsafe { local.next.get().write(*chain) };
            // INVARIANT: It stays where it is until it is removed.
            *chain = local;
        });
    }

    /// Lets a region not be found any more, if it could be. Any context.
    ///
    /// # Safety
    ///
    /// If it was inserted, then in this table. Nobody else inserts or removes it meanwhile.
    pub(crate) unsafe fn remove(&self, local: &DescEntry) {
        let desc = local.desc.load(Relaxed);
        if desc == 0 {
            return;
        }
        self.with(desc, |chain| {
            let mut at: *mut Link = chain;
            // SAFETY: First that of the chain, then that of one of its `DescEntry`s, whose lock is held.
            while !ptr::eq(unsafe { *at }, local) {
                // SAFETY: It is in this chain, by the invariant, so this one isn't the last.
                at = unsafe { (**at).next.get() };
            }
            // SAFETY: As in the loop; what leads to it leads to the next one now.
            unsafe { *at = *local.next.get() };
            // INVARIANT: Both under the lock.
            local.desc.store(0, Relaxed);
        });
    }
}

#[kernel::macros::kunit_tests(kfabric_descs)]
mod tests {
    use super::*;

    fn base(desc: usize) -> u64 {
        widen(desc) << 32
    }

    fn insert(descs: &Descs, desc: usize) -> Result<KBox<DescEntry>> {
        let local = KBox::new(DescEntry::new(0, 100, Access::SEND), GFP_KERNEL)?;
        // SAFETY: New; the box stays where it is, and each test removes it.
        unsafe { descs.insert(&local, desc, base(desc), true) };
        Ok(local)
    }

    fn remove(descs: &Descs, local: &DescEntry) {
        // SAFETY: The test has inserted it in this table, if anywhere, and is alone.
        unsafe { descs.remove(local) };
    }

    fn is_found(descs: &Descs, desc: usize) -> bool {
        let expected = DescMr {
            start: None,
            base: base(desc),
            len: 100,
            access: Access::SEND,
            whole: true,
        };
        descs.find(desc) == Some(expected)
    }

    #[test]
    fn found_as_long_as_they_are_there() -> Result {
        // More than there are chains.
        const MANY: usize = 3 << (LOCKS_BITS + CHAINS_BITS);
        let descs = Descs::new()?;
        let mut all = KVVec::new();
        for desc in 1..=MANY {
            all.push(insert(&descs, desc)?, GFP_KERNEL)?;
        }
        assert!((1..=MANY).all(|desc| is_found(&descs, desc)));
        assert_eq!(descs.find(MANY + 1), None);
        for (index, local) in all.iter().enumerate() {
            if index % 3 != 0 {
                remove(&descs, local);
            }
        }
        // The remaining descriptors are 1 more than a multiple of 3.
        assert!((1..=MANY).all(|desc| is_found(&descs, desc) == (desc % 3 == 1)));
        for local in all.iter() {
            // Twice is no harm: it isn't there any more.
            remove(&descs, local);
            remove(&descs, local);
        }
        assert!((1..=MANY).all(|desc| descs.find(desc).is_none()));
        Ok(())
    }

    #[test]
    fn none_is_not_found() -> Result {
        let descs = Descs::new()?;
        let local = insert(&descs, 0)?;
        assert_eq!(descs.find(0), None);
        remove(&descs, &local);
        Ok(())
    }
}
