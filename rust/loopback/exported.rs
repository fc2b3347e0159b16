// SPDX-License-Identifier: GPL-2.0

//! The exported part of a domain, which peers can find: its keys, and the regions that they lead
//! to.

use crate::*;
use kernel::{
    new_spinlock,
    rbtree::{
        Entry,
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::SpinLock, //
};
use kfabric::{
    gate::{
        Gate,
        GateGuard,
        Shared, //
    },
    random,
    CntrCore, //
};

/// The keys of a domain, and the properties that peers know it by.
pub(crate) struct ExportedDomain {
    keys: Arc<Keys>,
    auth_key: KVec<u8>,
    /// Peers that may write to a region may do atomic operations there.
    atomics: bool,
}

impl ExportedDomain {
    /// Makes a domain without regions. May sleep.
    pub(crate) fn new(auth_key: KVec<u8>, atomics: bool) -> Result<Self, Refusal> {
        Ok(Self {
            keys: Arc::new(Keys::new()?, GFP_KERNEL)?,
            auth_key,
            atomics,
        })
    }

    /// Returns the keys of the domain's regions.
    pub(crate) fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// Checks whether peers that may write to a region may do atomic operations there.
    pub(crate) fn atomics(&self) -> bool {
        self.atomics
    }

    /// Returns the authorization key of peers that come from this domain.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }
}

/// Set in the keys that the core gives to mapped raw keys, and so in none here.
pub(crate) const MAPPED: u64 = 1 << 63;

/// Number of trees that the keys are spread over. With a million keys each has a thousand, so a
/// lookup visits ten nodes. Keys are any 63 bits, for which an array has no space.
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 10;

/// A piece of a region: the memory that one key reaches.
#[derive(Clone)]
pub(crate) struct Piece {
    /// The region.
    pub(crate) region: Arc<Region>,
    /// Its offset in the region, in bytes.
    pub(crate) at: u64,
    /// The address of its first byte for peers.
    pub(crate) base: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
}

/// All keys of a domain.
///
/// Lock order: a tree's lock is a leaf; regions are dropped outside of it.
pub(crate) struct Keys {
    // Too large for a kmalloc that always succeeds: with lock debugging some 80 KiB.
    shards: Pin<KVBox<[Shard; SHARDS]>>,
    /// Number of the next key that is chosen here.
    next: Atomic<u64>,
    /// Makes the keys of one domain different from another's.
    salt: u64,
}

/// A tree with some of the keys.
type Shard = SpinLock<RBTree<u64, Piece>>;

/// Keeps `Keys` small: it is one allocation of physically contiguous memory.
const _: () = assert!(size_of::<Keys>() <= 64);

/// A tree node for a key, allocated before the key is known to be free.
pub(crate) struct KeyReservation(RBTreeNodeReservation<u64, Piece>);

impl KeyReservation {
    /// Allocates a node. May sleep.
    pub(crate) fn new() -> Result<Self, Refusal> {
        Ok(Self(
            RBTreeNodeReservation::new(GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
        ))
    }
}

impl Keys {
    /// Makes an empty table. May sleep.
    pub(crate) fn new() -> Result<Self, Errno> {
        let shards = pin_init::pin_init_array_from_fn(|_| new_spinlock!(RBTree::new()));
        Ok(Self {
            shards: KVBox::pin_init(shards, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
            next: Atomic::new(0),
            salt: random::number(),
        })
    }

    fn shard(&self, key: u64) -> Result<&Shard, Refusal> {
        // The upper bits of a product depend on all bits of the key.
        let spread = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SHARD_BITS);
        let shard = usize::try_from(spread).unwrap_or(usize::MAX);
        Ok(self.shards.get(shard).ok_or(Errno::EINVAL)?)
    }

    /// Chooses a key that was never chosen in this domain. Any context.
    ///
    /// Keys don't tell how many there are, nor what the next one will be.
    pub(crate) fn choose(&self) -> u64 {
        scramble(self.next.fetch_add(1, Relaxed), self.salt)
    }

    /// Adds a key. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOKEY`: the table has that key.
    pub(crate) fn insert(
        this: &Arc<Self>,
        place: KeyReservation,
        key: u64,
        piece: Piece,
    ) -> Result<KeyGuard, Refusal> {
        let keys = this.clone();
        let mut shard = this.shard(key)?.lock();
        if let Entry::Vacant(vacant) = shard.entry(key) {
            vacant.insert(piece, place.0);
            // INVARIANT: Just put in.
            return Ok(KeyGuard { keys, key });
        }
        Err(Refusal::new(Errno::ENOKEY, c"key is in use").value(key))
    }

    /// Returns the piece that a key leads to. Any context.
    pub(crate) fn get(&self, key: u64) -> Option<Piece> {
        self.shard(key).ok()?.lock().get(&key).cloned()
    }

    fn remove(&self, key: u64) {
        if let Ok(shard) = self.shard(key) {
            let removed = shard.lock().remove_node(&key);
            drop(removed);
        }
    }
}

/// A key that is in the table. Dropping this takes it out.
///
/// # Invariants
///
/// The key is in the table, and nobody else takes it out.
pub(crate) struct KeyGuard {
    keys: Arc<Keys>,
    key: u64,
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.keys.remove(self.key);
    }
}

/// Maps different numbers to different numbers of 63 bits.
fn scramble(number: u64, salt: u64) -> u64 {
    // Each step can be undone, so no two numbers meet.
    let mut key = (number ^ salt) & !MAPPED;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        key = key.wrapping_mul(factor) & !MAPPED;
        key ^= key >> index(32);
    }
    key
}

/// A region. Peers find it by its key, and go through the gate to its memory.
#[pin_data]
pub(crate) struct Region {
    #[pin]
    gate: Gate<RegionContents, Shared>,
    auth_key: KVec<u8>,
}

/// The memory of a region, behind the gate.
pub(crate) struct RegionContents {
    pub(crate) extent: CpuMemory,
    /// Set when the region is enabled.
    bound: SetOnce<RegionBindings>,
}

/// The counter and the endpoint that a region is bound to.
#[derive(Clone)]
struct RegionBindings {
    /// Counts writes.
    counter: Option<Arc<CntrCore>>,
    /// The only endpoint that peers may use, if there is one.
    endpoint: Option<Arc<EpCore>>,
}

impl RegionContents {
    /// Returns the counter of writes, if there is one.
    pub(crate) fn counter(&self) -> Option<&Arc<CntrCore>> {
        self.bound.as_ref()?.counter.as_ref()
    }

    /// Returns the only endpoint that peers may use, if there is one.
    pub(crate) fn endpoint(&self) -> Option<&Arc<EpCore>> {
        self.bound.as_ref()?.endpoint.as_ref()
    }
}

impl Region {
    /// Makes a region that is not enabled. May sleep.
    pub(crate) fn new(auth_key: &[u8], extent: CpuMemory) -> Result<Arc<Self>, Refusal> {
        let mut own = KVec::new();
        own.extend_from_slice(auth_key, GFP_KERNEL)?;
        let region = try_pin_init!(Self {
            gate <- Gate::new(RegionContents {
                extent,
                bound: SetOnce::new(),
            }),
            auth_key: own,
        }? Error);
        Ok(Arc::pin_init(region, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?)
    }

    /// Returns the authorization key that a peer must have; empty for none.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// Lets peers access the region. If it is bound to an endpoint, they must use that. Any
    /// context.
    pub(crate) fn enable(&self, bindings: &Bindings) -> Result<(), Refusal> {
        let bound = RegionBindings {
            counter: bindings.counter.clone(),
            endpoint: bindings.endpoint.clone(),
        };
        let inside = self.gate.enter();
        match inside.is_some_and(|inside| inside.get().bound.populate(bound)) {
            true => Ok(()),
            false => Err(Refusal::new(Errno::EINVAL, c"enabled before, or closed")),
        }
    }

    /// Enters the gate to the memory; `None` if the region is not enabled. Any context.
    pub(crate) fn enter(&self) -> Option<GateGuard<'_, RegionContents, Shared>> {
        let inside = self.gate.enter()?;
        inside.get().bound.as_ref()?;
        Some(inside)
    }

    /// Replaces the memory. Sleeps until no peer uses the old memory. No peer enters meanwhile.
    pub(crate) fn refresh(&self, extent: CpuMemory) -> Result<(), Refusal> {
        let disabled = Refusal::new(Errno::EINVAL, c"not enabled");
        let inside = self.enter().ok_or(disabled)?;
        let bound = SetOnce::new();
        if let Some(old) = inside.get().bound.as_ref() {
            bound.populate(old.clone());
        }
        drop(inside);
        match self.gate.shut() {
            Some(shut) => {
                shut.drain().replace(RegionContents { extent, bound });
                Ok(())
            }
            None => Err(disabled),
        }
    }

    /// Shuts the region for good. Sleeps until no peer uses the memory.
    pub(crate) fn close(&self) {
        match self.gate.shut() {
            Some(shut) => shut.drain().take_away(),
            None => self.gate.wait_gone(),
        }
    }
}

#[kernel::macros::kunit_tests(kfi_loop_keys)]
mod tests {
    use super::*;

    #[test]
    fn chosen_keys_differ() -> Result {
        for salt in [0, u64::MAX, random::number()] {
            let mut keys = RBTree::new();
            for number in 0..1000 {
                let key = scramble(number, salt);
                assert_eq!(key & MAPPED, 0);
                assert!(keys.try_create_and_insert(key, (), GFP_KERNEL)?.is_none());
            }
        }
        Ok(())
    }

    #[test]
    fn keys_are_spread() -> Result {
        let keys = Keys::new()?;
        let first = core::ptr::from_ref(keys.shard(0)?);
        for spread in [1, 4096, (1 << 43) - 57, 1 << 50] {
            let here = |number: &u64| {
                keys.shard(number * spread)
                    .is_ok_and(|shard| core::ptr::eq(shard, first))
            };
            // One of 1024 each, as it should be, or a few more.
            assert!((0..8192).filter(here).count() < 100);
        }
        Ok(())
    }

    #[test]
    fn shards_are_found() -> Result {
        let keys = Keys::new()?;
        for key in [0, 1, u64::MAX, MAPPED, random::number()] {
            assert!(keys.shard(key).is_ok());
            assert!(keys.get(key).is_none());
        }
        Ok(())
    }
}
