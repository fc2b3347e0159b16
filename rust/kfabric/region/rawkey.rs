// SPDX-License-Identifier: GPL-2.0

//! Raw keys: what a peer has to know about a region, as bytes for the wire. Pure; knows no memory.
//!
//! A region can be several regions of its device, its pieces, each with a key of its own. The raw
//! key lists them in order. All numbers are little-endian:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | [`MAGIC`] |
//! | 4 | 2 | [`VERSION`] |
//! | 6 | 2 | 0 |
//! | 8 | 4 | how many pieces |
//! | 12 | 4 | 0 |
//! | 16 | 8 | length of the region: the sum of the pieces |
//! | 24 + 24 n | 8 | key of piece n |
//! | 32 + 24 n | 8 | where its first byte is for a peer |
//! | 40 + 24 n | 8 | its length |
//!
//! There is one way to write a list of pieces, and nothing else is read.
//!
//! C header: [`include/kfi_raw_ext.h`](srctree/include/kfi_raw_ext.h)

pub(crate) mod map;

use super::shape::AddrRange;
use crate::prelude::*;

/// The bytes "KFRK".
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"KFRK");
/// The only version there is.
pub(crate) const VERSION: u16 = 1;
/// Most pieces that a region can have.
pub const MAX_PIECES: usize = 4096;
/// Set in the keys of mapped raw keys, and in no key of a provider.
pub(crate) const MAPPED: u64 = 1 << 63;

const HEADER: usize = 24;
const PIECE: usize = 24;

/// A part of a region, as a peer reaches it: one region of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemotePiece {
    /// Its key. Bit 63 is not set.
    pub key: u64,
    /// Where its first byte is for a peer.
    pub base: u64,
    /// Length in bytes; not 0, and `base + len` does not wrap.
    pub len: u64,
}

/// Returns the length in bytes of a raw key of `pieces` pieces. It is the `mr_key_size` of a domain
/// of `KFI_MR_RAW` whose regions have no more.
pub const fn raw_key_size(pieces: usize) -> usize {
    pieces.saturating_mul(PIECE).saturating_add(HEADER)
}

/// Writes the raw key of a region. May sleep.
///
/// `E2BIG` if it has more than [`MAX_PIECES`] pieces.
pub(crate) fn encode(pieces: &[RemotePiece]) -> Result<KVVec<u8>, Refusal> {
    let count = match u32::try_from(pieces.len()) {
        Ok(count) if pieces.len() <= MAX_PIECES => count,
        _ => {
            let refusal = Refusal::new(Errno::E2BIG, c"too many pieces for a raw key");
            return Err(refusal.value(widen(pieces.len())));
        }
    };
    let total = pieces
        .iter()
        .fold(0, |sum, piece| piece.len.wrapping_add(sum));
    let mut raw = KVVec::with_capacity(raw_key_size(pieces.len()), GFP_KERNEL)?;
    let mut put = |bytes: &[u8]| raw.extend_from_slice(bytes, GFP_KERNEL);
    put(&MAGIC.to_le_bytes())?;
    put(&VERSION.to_le_bytes())?;
    put(&[0; 2])?;
    put(&count.to_le_bytes())?;
    put(&[0; 4])?;
    put(&total.to_le_bytes())?;
    for piece in pieces {
        put(&piece.key.to_le_bytes())?;
        put(&piece.base.to_le_bytes())?;
        put(&piece.len.to_le_bytes())?;
    }
    Ok(raw)
}

/// Reads a raw key from anywhere: `EINVAL` with what is wrong, and in which piece. May sleep.
pub(crate) fn parse(raw: &[u8]) -> Result<KVVec<RemotePiece>, Refusal> {
    let mut from = Reader(raw);
    let (magic, version, zero) = (from.u32()?, from.u16()?, from.u16()?);
    if magic != MAGIC {
        return Err(malformed(c"raw key does not begin with its magic").value(magic.into()));
    }
    if version != VERSION {
        return Err(malformed(c"unknown version of a raw key").value(version.into()));
    }
    let (count, zeros, total) = (index(from.u32()?), from.u32()?, from.u64()?);
    if zero != 0 || zeros != 0 {
        return Err(malformed(c"reserved bytes of a raw key are not 0"));
    }
    if count == 0 || count > MAX_PIECES {
        return Err(malformed(c"raw key of no piece, or of too many").value(widen(count)));
    }
    if raw.len() != raw_key_size(count) {
        let refusal = malformed(c"length and count of a raw key don't agree");
        return Err(refusal.value(widen(raw.len())));
    }
    let mut pieces = KVVec::with_capacity(count, GFP_KERNEL)?;
    let mut sum = 0_u64;
    for index in 0..count {
        let piece = from.piece().map_err(|e| e.at(index))?;
        let overflow = malformed(c"sum of a raw key's lengths overflows").at(index);
        sum = sum.checked_add(piece.len).ok_or(overflow)?;
        pieces.push(piece, GFP_KERNEL)?;
    }
    if sum != total {
        return Err(malformed(c"lengths of a raw key don't add up to its total").value(total));
    }
    Ok(pieces)
}

const fn malformed(why: &'static CStr) -> Refusal {
    Refusal::new(Errno::EINVAL, why)
}

/// Takes numbers from the front of the bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (bytes, rest) = self
            .0
            .split_first_chunk()
            .ok_or(malformed(c"raw key is cut off"))?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u16(&mut self) -> Result<u16, Refusal> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Refusal> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Refusal> {
        self.take().map(u64::from_le_bytes)
    }

    fn piece(&mut self) -> Result<RemotePiece, Refusal> {
        let (key, base, len) = (self.u64()?, self.u64()?, self.u64()?);
        if key & MAPPED != 0 {
            return Err(malformed(c"piece with the key of a mapped raw key").value(key));
        }
        AddrRange::new(base, len)?;
        Ok(RemotePiece { key, base, len })
    }
}

#[kernel::macros::kunit_tests(kfabric_rawkey)]
mod tests {
    use super::*;
    use crate::support::random::Prng;

    const ONE: RemotePiece = RemotePiece {
        key: 0x1122_3344,
        base: 0xaabb_c123,
        len: 0x1001,
    };

    fn parsed(raw: &[u8]) -> Result<KVVec<RemotePiece>, Errno> {
        parse(raw).map_err(|e| e.errno())
    }

    /// Returns a raw key of [`ONE`] with other bytes at a place.
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

    /// Makes a well-formed list of pieces.
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
        for _ in 0..500 {
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
        pr_info!("rawkey fuzz: {} of 500 were well-formed\n", widen(read));
        assert!(read > 0 && read < 500);
        Ok(())
    }
}
