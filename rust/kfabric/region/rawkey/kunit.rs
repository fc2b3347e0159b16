// SPDX-License-Identifier: GPL-2.0

//! Unit tests of raw keys.

#[kernel::macros::kunit_tests(kfabric_rawkey)]
mod tests {
    use crate::{
        region::rawkey::*,
        support::{
            errno::Errno,
            num::widen,
            random::Prng, //
        }, //
    };

    const ONE: RemotePiece = RemotePiece {
        key: 0x1122_3344,
        base: 0xaabb_c123,
        len: 0x1001,
    };

    fn parsed(raw: &[u8]) -> Result<KVVec<RemotePiece>, Errno> {
        parse(raw).map_err(|e| e.errno())
    }

    /// A raw key of [`ONE`] with other bytes at a place.
    fn spoiled(place: usize, bytes: &[u8]) -> Result<KVVec<u8>> {
        let mut raw = encode(&[ONE])?;
        for (byte, other) in raw.iter_mut().skip(place).zip(bytes) {
            *byte = *other;
        }
        Ok(raw)
    }

    #[test]
    fn the_bytes_are_these() -> Result {
        let raw = encode(&[ONE])?;
        assert!(raw.len() == 48 && raw.len() == raw_key_size(1));
        assert!(raw.starts_with(b"KFRK\x01\0\0\0\x01\0\0\0\0\0\0\0\x01\x10\0\0\0\0\0\0"));
        assert!(
            raw.ends_with(b"\x44\x33\x22\x11\0\0\0\0\x23\xc1\xbb\xaa\0\0\0\0\x01\x10\0\0\0\0\0\0")
        );
        Ok(())
    }

    #[test]
    fn any_other_length_is_refused() -> Result {
        let raw = encode(&[ONE, ONE])?;
        for len in 0..raw.len() {
            let part = raw.get(..len).ok_or(EINVAL)?;
            assert!(parsed(part).err() == Some(Errno::EINVAL));
        }
        let mut longer = raw;
        longer.push(0, GFP_KERNEL)?;
        assert!(parsed(&longer).err() == Some(Errno::EINVAL));
        longer.resize(raw_key_size(3), 0, GFP_KERNEL)?;
        assert!(parsed(&longer).err() == Some(Errno::EINVAL));
        Ok(())
    }

    #[test]
    fn every_malformed_field_is_refused() -> Result {
        assert!(parsed(&spoiled(0, b"KFRK")?).is_ok());
        let spoilt: [(usize, &[u8]); 14] = [
            (0, b"KFRL"),
            (0, b"KRFK"),
            (4, &[0, 0]),
            (4, &[2, 0]),
            (4, &[1, 1]),
            (6, &[1, 0]),
            (8, &[0; 4]),
            (8, &[2, 0, 0, 0]),
            (8, &[0xff; 4]),
            (12, &[0, 0, 0, 1]),
            (16, &[2]),
            (31, &[0x80]),
            (32, &[0xff; 8]),
            (40, &[0; 8]),
        ];
        for (place, bytes) in spoilt {
            assert!(parsed(&spoiled(place, bytes)?).err() == Some(Errno::EINVAL));
        }
        Ok(())
    }

    #[test]
    fn sums_may_not_overflow() -> Result {
        let half = RemotePiece {
            key: 1,
            base: 0,
            len: 1 << 63,
        };
        assert!(parsed(&encode(&[half])?).is_ok());
        let refused = parse(&encode(&[half, ONE, half])?).err().ok_or(EINVAL)?;
        assert!(refused.errno() == Errno::EINVAL && refused.index() == Some(2));
        Ok(())
    }

    #[test]
    fn the_piece_to_blame_is_told() -> Result {
        let wraps = RemotePiece {
            base: u64::MAX,
            ..ONE
        };
        let refused = parse(&encode(&[ONE, wraps])?).err().ok_or(EINVAL)?;
        assert!(refused.index() == Some(1));
        Ok(())
    }

    #[test]
    fn no_more_than_most_pieces() -> Result {
        let mut pieces = KVVec::from_elem(ONE, MAX_PIECES, GFP_KERNEL)?;
        let raw = encode(&pieces)?;
        assert!(raw.len() == raw_key_size(MAX_PIECES));
        assert!(parsed(&raw).is_ok_and(|read| *read == *pieces));
        pieces.push(ONE, GFP_KERNEL)?;
        assert!(encode(&pieces).err().map(|e| e.errno()) == Some(Errno::E2BIG));
        Ok(())
    }

    /// A well-formed list of pieces.
    fn some_pieces(rng: &mut Prng) -> Result<KVVec<RemotePiece>> {
        let mut pieces = KVVec::new();
        for _ in 0..=rng.below(20) {
            let len = 1 + rng.below(1 << 40);
            let piece = RemotePiece {
                key: rng.any() & !MAPPED,
                base: rng.below(u64::MAX - len),
                len,
            };
            pieces.push(piece, GFP_KERNEL)?;
        }
        Ok(pieces)
    }

    #[test]
    fn what_was_written_is_read() -> Result {
        let mut rng = Prng::new("rawkey read");
        for _ in 0..300 {
            let pieces = some_pieces(&mut rng)?;
            assert!(parsed(&encode(&pieces)?).is_ok_and(|read| *read == *pieces));
        }
        Ok(())
    }

    /// Turns bits, puts in special numbers, cuts off or adds.
    fn damage(raw: &mut KVVec<u8>, rng: &mut Prng) -> Result {
        match rng.below(4) {
            0 => raw.truncate(rng.index(raw.len() + 1)),
            1 => raw.resize(raw.len() + rng.index(64), 0, GFP_KERNEL)?,
            2 => {
                let place = rng.index(raw.len());
                let special = [0, 1, u64::MAX, 1 << 63, rng.any()];
                let value = special.get(rng.index(special.len())).copied();
                let bytes = value.unwrap_or(0).to_le_bytes();
                let end = [1, 2, 4, 8].get(rng.index(4)).copied().unwrap_or(8);
                for (byte, other) in raw.iter_mut().skip(place).zip(bytes).take(end) {
                    *byte = other;
                }
            }
            _ => {
                let (place, bit) = (rng.index(raw.len()), rng.below(8));
                if let Some(byte) = raw.get_mut(place) {
                    *byte ^= 1 << bit;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn whatever_is_read_is_sound() -> Result {
        let mut rng = Prng::new("rawkey fuzz");
        let mut read = 0;
        for _ in 0..2_000 {
            let mut raw = encode(&some_pieces(&mut rng)?)?;
            for _ in 0..=rng.below(3) {
                damage(&mut raw, &mut rng)?;
            }
            let Ok(pieces) = parse(&raw) else { continue };
            // There is only one way to write it, and none of it is out of range.
            read += 1;
            assert!(*encode(&pieces)? == *raw);
            let sum = pieces
                .iter()
                .map(|piece| u128::from(piece.len))
                .sum::<u128>();
            assert!(sum <= u64::MAX.into());
            assert!(pieces.iter().all(|piece| piece.len != 0
                && piece.key & MAPPED == 0
                && piece.base.checked_add(piece.len).is_some()));
        }
        // Damaged keys and addresses are well-formed; most of the rest must have been refused.
        pr_info!("rawkey fuzz: {} of 2000 were well-formed\n", widen(read));
        assert!(read > 0 && read < 2_000);
        Ok(())
    }
}
