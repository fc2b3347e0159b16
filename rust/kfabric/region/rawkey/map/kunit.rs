// SPDX-License-Identifier: GPL-2.0

//! Unit tests of mapped raw keys.

#[kernel::macros::kunit_tests(kfabric_keymap)]
mod tests {
    use crate::{
        region::rawkey::map::*,
        support::{
            errno::Errno,
            num::widen,
            random::Prng, //
        }, //
    };

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

    fn three() -> Result<MappedKey> {
        Ok(MappedKey::new(BASE, list(&THREE)?)?)
    }

    /// Does an access become these parts?
    fn becomes(mapped: &MappedKey, addr: u64, len: u64, parts: &[RemotePiece]) -> bool {
        match mapped.resolve(addr, len) {
            Ok(resolved) => {
                resolved.count() == parts.len() && resolved.parts().eq(parts.iter().copied())
            }
            Err(_) => false,
        }
    }

    fn refused(mapped: &MappedKey, addr: u64, len: u64) -> bool {
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
        let map =
            |base| Ok::<_, Error>(MappedKey::new(base, list(&THREE)?).err().map(|e| e.errno()));
        assert!(map(u64::MAX - 1101)?.is_none());
        assert!(map(u64::MAX - 1100)? == Some(Errno::EINVAL));
        let ends = MappedKey::new(u64::MAX - 1101, list(&THREE)?)?;
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
            let mapped = MappedKey::new(BASE, pieces)?;
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
        // Whoever uses it meanwhile can go on.
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
