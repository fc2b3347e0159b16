// SPDX-License-Identifier: GPL-2.0

//! The raw keys of peers that a domain has mapped.
//!
//! A mapped raw key has a number, which is a key for use in this domain, as other keys are; it is
//! looked up here when a peer's memory is to be reached by it. Numbers don't come back, so that one
//! that was unmapped never leads to another peer's memory.

use crate::{
    prelude::*,
    region::rawkey::{
        RemotePiece,
        MAPPED, //
    }, //
};
use kernel::rbtree::{
    RBTree,
    RBTreeNodeReservation, //
};

/// The mapped keys of a domain.
///
/// Lock order: the lock is a leaf.
#[pin_data]
pub(crate) struct KeyMap {
    #[pin]
    keys: IrqLock<Keys>,
}

struct Keys {
    tree: RBTree<u64, Arc<MappedRawKey>>,
    /// The next key. All ones, `KFI_KEY_NOTAVAIL`, is never given out.
    next: u64,
}

impl KeyMap {
    pub(crate) fn new() -> impl PinInit<Self> {
        let keys = Keys {
            tree: RBTree::new(),
            next: MAPPED | 1,
        };
        pin_init!(Self {
            keys <- new_irq_lock!(keys, c"kfabric_keys"),
        })
    }

    /// Maps the pieces behind a peer's base address; gives the key. Sleeps.
    pub(crate) fn map(&self, base: u64, pieces: KVVec<RemotePiece>) -> Result<u64, Refusal> {
        let mapped = Arc::new(MappedRawKey::new(base, pieces)?, GFP_KERNEL)?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        self.keys.with(|keys| {
            let key = keys.next;
            let Some(next) = key.checked_add(1) else {
                return Err(Refusal::new(
                    Errno::ENOSPC,
                    c"mapped keys have no number left",
                ));
            };
            keys.next = next;
            keys.tree.insert(node.into_node(key, mapped));
            Ok(key)
        })
    }

    /// Unmaps a key. A task that uses the key may go on with that. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no key of this number is mapped.
    pub(crate) fn unmap(&self, key: u64) -> Result<(), Refusal> {
        let removed = self.keys.with(|keys| keys.tree.remove_node(&key));
        // Freed without the lock.
        match removed {
            Some(_) => Ok(()),
            None => Err(Refusal::new(Errno::EINVAL, c"no such mapped key").value(key)),
        }
    }

    /// Looks a key up; `ENOKEY` if it isn't mapped. May sleep, when what it gives is dropped.
    pub(crate) fn get(&self, key: u64) -> Result<Arc<MappedRawKey>, Refusal> {
        let found = self.keys.with(|keys| keys.tree.get(&key).cloned());
        found.ok_or(Self::unknown(key))
    }

    /// Calls `f` with each part of an access by a mapped key, in order, until `f` refuses one. An access of
    /// length 0 has one part, of length 0. Any context; `f` runs with interrupts off.
    ///
    /// # Errors
    ///
    /// - `ENOKEY`: the key isn't mapped.
    /// - `EINVAL`: the access isn't wholly inside.
    /// - The errors of `f`.
    pub(crate) fn each(
        &self,
        key: u64,
        addr: u64,
        len: u64,
        f: impl FnMut(RemotePiece) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.keys.with(|keys| {
            let mapped = keys.tree.get(&key).ok_or(Self::unknown(key))?;
            mapped.split(addr, len)?.parts().try_for_each(f)
        })
    }

    const fn unknown(key: u64) -> Refusal {
        Refusal::new(Errno::ENOKEY, c"key is not mapped").value(key)
    }
}

/// A mapped raw key: a peer's region, which counts from the peer's base address through all pieces
/// in order.
///
/// # Invariants
///
/// `ends` has an entry for each of `pieces`: how many bytes of the region it and those before it
/// hold. These numbers rise, and the last one plus `base` does not wrap.
pub(crate) struct MappedRawKey {
    base: u64,
    pieces: KVVec<RemotePiece>,
    ends: KVVec<u64>,
}

impl MappedRawKey {
    /// Makes a mapped key. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region would wrap.
    pub(crate) fn new(base: u64, pieces: KVVec<RemotePiece>) -> Result<Self, Refusal> {
        let wraps = Refusal::new(Errno::EINVAL, c"base address and length wrap").value(base);
        let mut ends = KVVec::with_capacity(pieces.len(), GFP_KERNEL)?;
        let mut end = 0_u64;
        for piece in &pieces {
            end = end.checked_add(piece.len).ok_or(wraps)?;
            ends.push(end, GFP_KERNEL)?;
        }
        base.checked_add(end).ok_or(wraps)?;
        // INVARIANT: Just summed up and checked; each piece has a byte.
        Ok(Self { base, pieces, ends })
    }

    /// Returns the pieces of the peer's memory that an access of `len` bytes at `addr` is split
    /// into. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the access is of length 0, or not wholly inside.
    pub(crate) fn resolve(&self, addr: u64, len: u64) -> Result<AccessPieces<'_>, Refusal> {
        if len == 0 {
            return Err(Refusal::new(Errno::EINVAL, c"access of length 0"));
        }
        self.split(addr, len)
    }

    /// Splits an access as [`resolve`](Self::resolve) does. An access of length 0 is one part of
    /// length 0, also at the end of the region. Any context.
    fn split(&self, addr: u64, len: u64) -> Result<AccessPieces<'_>, Refusal> {
        let outside = Refusal::new(Errno::EINVAL, c"access is not inside the region").value(addr);
        let from = addr.checked_sub(self.base).ok_or(outside)?;
        let to = from.checked_add(len).ok_or(outside)?;
        if self.ends.last().is_none_or(|end| to > *end) {
            return Err(outside);
        }
        let first = self.ends.partition_point(|end| *end <= from);
        // Nothing but an access of length 0 begins where the last piece ends.
        let first = first.min(self.ends.len().saturating_sub(1));
        let last = self.ends.partition_point(|end| *end < to).max(first);
        let before = first.checked_sub(1).and_then(|i| self.ends.get(i));
        Ok(AccessPieces {
            pieces: self.pieces.get(first..=last).ok_or(outside)?,
            skip: from - before.copied().unwrap_or(0),
            len,
        })
    }
}

/// The pieces that an access is split into.
///
/// # Invariants
///
/// The access begins in the first piece and ends in the last.
pub(crate) struct AccessPieces<'a> {
    pieces: &'a [RemotePiece],
    /// Bytes of the first piece that are before the access.
    skip: u64,
    len: u64,
}

impl AccessPieces<'_> {
    /// Returns the number of parts.
    pub(crate) fn count(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the parts in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = RemotePiece> + '_ {
        let (mut skip, mut left) = (self.skip, self.len);
        self.pieces.iter().map(move |piece| {
            let part = RemotePiece {
                key: piece.key,
                base: piece.base + skip,
                len: left.min(piece.len - skip),
            };
            skip = 0;
            left -= part.len;
            part
        })
    }
}

#[kernel::macros::kunit_tests(kfabric_keymap)]
mod tests {
    use super::*;
    use crate::support::random::Prng;

    const BASE: u64 = 0x5000_0123;

    const fn piece(key: u64, base: u64, len: u64) -> RemotePiece {
        RemotePiece { key, base, len }
    }

    const THREE: [RemotePiece; 3] = [
        piece(7, 0x10_0123, 100),
        piece(8, 0x90_0000, 1),
        piece(9, 0x20_0000, 1000),
    ];

    fn list(pieces: &[RemotePiece]) -> Result<KVVec<RemotePiece>> {
        let mut list = KVVec::new();
        list.extend_from_slice(pieces, GFP_KERNEL)?;
        Ok(list)
    }

    fn three() -> Result<MappedRawKey> {
        Ok(MappedRawKey::new(BASE, list(&THREE)?)?)
    }

    /// Does an access become these parts?
    fn becomes(mapped: &MappedRawKey, addr: u64, len: u64, parts: &[RemotePiece]) -> bool {
        match mapped.resolve(addr, len) {
            Ok(resolved) => {
                resolved.count() == parts.len() && resolved.parts().eq(parts.iter().copied())
            }
            Err(_) => false,
        }
    }

    fn refused(mapped: &MappedRawKey, addr: u64, len: u64) -> bool {
        mapped.resolve(addr, len).err().map(|e| e.errno()) == Some(Errno::EINVAL)
    }

    #[test]
    fn accesses_are_split() -> Result {
        let mapped = three()?;
        let [a, b, c] = THREE;
        assert!(becomes(&mapped, BASE, 1101, &THREE));
        assert!(becomes(&mapped, BASE, 1, &[piece(7, a.base, 1)]));
        assert!(becomes(&mapped, BASE + 99, 1, &[piece(7, a.base + 99, 1)]));
        assert!(becomes(&mapped, BASE, 100, &[a]));
        assert!(becomes(&mapped, BASE + 100, 1, &[b]));
        assert!(becomes(&mapped, BASE + 100, 2, &[b, piece(9, c.base, 1)]));
        assert!(becomes(&mapped, BASE + 101, 1000, &[c]));
        assert!(becomes(
            &mapped,
            BASE + 1100,
            1,
            &[piece(9, c.base + 999, 1)]
        ));
        assert!(becomes(
            &mapped,
            BASE + 50,
            61,
            &[piece(7, a.base + 50, 50), b, piece(9, c.base, 10)]
        ));
        Ok(())
    }

    #[test]
    fn nothing_outside_is_reached() -> Result {
        let mapped = three()?;
        assert!(refused(&mapped, BASE - 1, 1));
        assert!(refused(&mapped, BASE - 1, 2));
        assert!(refused(&mapped, BASE, 0));
        assert!(refused(&mapped, BASE, 1102));
        assert!(refused(&mapped, BASE + 1101, 1));
        assert!(refused(&mapped, BASE + 1100, 2));
        assert!(refused(&mapped, 0, 1));
        assert!(refused(&mapped, BASE + 5, u64::MAX));
        assert!(refused(&mapped, BASE + 5, u64::MAX - 4));
        assert!(refused(&mapped, u64::MAX, 1));
        Ok(())
    }

    #[test]
    fn an_access_of_no_bytes_is_one_part() -> Result {
        let mapped = three()?;
        let at = |addr| {
            let split = mapped.split(addr, 0).map_err(|no| no.errno())?;
            assert!(split.count() == 1);
            let part = split.parts().next();
            part.ok_or(Errno::EIO)
        };
        let [a, b, c] = THREE;
        assert!(at(BASE) == Ok(piece(7, a.base, 0)));
        assert!(at(BASE + 50) == Ok(piece(7, a.base + 50, 0)));
        assert!(at(BASE + 100) == Ok(piece(8, b.base, 0)));
        assert!(at(BASE + 101) == Ok(piece(9, c.base, 0)));
        assert!(at(BASE + 1101) == Ok(piece(9, c.base + 1000, 0)));
        assert!(at(BASE - 1) == Err(Errno::EINVAL) && at(BASE + 1102) == Err(Errno::EINVAL));
        Ok(())
    }

    #[test]
    fn regions_may_not_wrap() -> Result {
        let map = |base| {
            Ok::<_, Error>(
                MappedRawKey::new(base, list(&THREE)?)
                    .err()
                    .map(|e| e.errno()),
            )
        };
        assert!(map(u64::MAX - 1101)?.is_none());
        assert!(map(u64::MAX - 1100)? == Some(Errno::EINVAL));
        let ends = MappedRawKey::new(u64::MAX - 1101, list(&THREE)?)?;
        assert!(becomes(
            &ends,
            u64::MAX - 1,
            1,
            &[piece(9, 0x20_0000 + 999, 1)]
        ));
        assert!(refused(&ends, u64::MAX, 1));
        Ok(())
    }

    #[test]
    fn splitting_agrees_with_counting_bytes() -> Result {
        let mut rng = Prng::new("keymap split");
        for _ in 0..300 {
            let (mut pieces, mut bytes) = (KVVec::new(), KVVec::new());
            for key in 0..=rng.below(9) {
                let part = piece(key, rng.below(1 << 50), 1 + rng.below(50));
                for byte in part.base..part.base + part.len {
                    bytes.push((key, byte), GFP_KERNEL)?;
                }
                pieces.push(part, GFP_KERNEL)?;
            }
            let mapped = MappedRawKey::new(BASE, pieces)?;
            for _ in 0..50 {
                let from = rng.index(bytes.len());
                let len = 1 + rng.index(bytes.len() - from);
                let resolved = mapped.resolve(BASE + widen(from), widen(len))?;
                assert!(resolved.count() == resolved.parts().count());
                let reached = resolved
                    .parts()
                    .flat_map(|part| (part.base..part.base + part.len).map(move |b| (part.key, b)));
                assert!(reached.eq(bytes.iter().copied().skip(from).take(len)));
            }
        }
        Ok(())
    }

    #[test]
    fn numbers_are_keys_and_dont_come_back() -> Result {
        let map = KBox::pin_init(KeyMap::new(), GFP_KERNEL)?;
        let first = map.map(BASE, list(&THREE)?)?;
        let second = map.map(BASE, list(&THREE)?)?;
        assert!(first & MAPPED != 0 && second & MAPPED != 0 && first != second);
        let none = |key| map.get(key).err().map(|e| e.errno()) == Some(Errno::ENOKEY);
        assert!(map.get(first).is_ok() && map.get(second).is_ok());
        assert!(none(0) && none(7) && none(u64::MAX) && none(second + 1));
        map.unmap(first)?;
        assert!(none(first) && map.get(second).is_ok());
        assert!(map.unmap(first).err().map(|e| e.errno()) == Some(Errno::EINVAL));
        let third = map.map(BASE, list(&THREE)?)?;
        assert!(third != first && third != second);
        // A task that uses the key can go on.
        let used = map.get(third)?;
        map.unmap(third)?;
        assert!(becomes(&used, BASE, 1101, &THREE));
        Ok(())
    }

    #[test]
    fn the_last_number_is_not_notavail() -> Result {
        let map = KBox::pin_init(KeyMap::new(), GFP_KERNEL)?;
        map.keys.with(|keys| keys.next = u64::MAX - 1);
        let last = map.map(BASE, list(&THREE)?)?;
        assert!(last == u64::MAX - 1);
        let refused = map.map(BASE, list(&THREE)?).err();
        assert!(refused.map(|e| e.errno()) == Some(Errno::ENOSPC));
        map.unmap(last)?;
        Ok(())
    }
}
