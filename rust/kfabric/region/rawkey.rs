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

use crate::{
    region::shape::AddrRange,
    support::{
        errno::Errno,
        num::{
            index,
            widen, //
        },
        refusal::Refusal, //
    }, //
};
use kernel::prelude::*;

mod kunit;
pub(crate) mod map;

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

/// Length in bytes of a raw key of so many pieces. It is the `mr_key_size` of a domain of
/// `KFI_MR_RAW` whose regions have no more.
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
