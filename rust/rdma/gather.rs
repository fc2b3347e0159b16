// SPDX-License-Identifier: GPL-2.0

//! Local memory of work requests, in segments.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_sge`
//!
//! MERGED scrap.rs
//! Memory for what comes back and nobody wants.
//!
//! MERGED any.rs
//! Memory of requests, whatever keeps it there, for requests that are to be of one type.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use core::{
    iter,
    ops::Range, //
};

use rdma_bindings as b;

use crate::{
    access::Access,
    buffer::{
        Buffer,
        Piece, //
    },
    few::Few,
    lend::Keep,
    mr::ValidMr,
    pd::Pd,
    qp::Qp, //
};

/// Memory that a work request goes to or comes from, in segments, with what keeps it there.
///
/// # Invariants
///
/// A device may read what `segments` name, and write there if `written`, as long as `kept` is
/// there; if `inline`, only a driver may read it, at the addresses of the processor.
pub struct Gather<K> {
    segments: Few<b::ib_sge>,
    kept: K,
    bytes: u64,
    written: bool,
    inline: bool,
}

impl Gather<()> {
    /// No memory, for messages without any.
    pub const fn none() -> Self {
        // INVARIANT: There are no segments.
        Self {
            segments: Few::new(),
            kept: (),
            bytes: 0,
            written: true,
            inline: false,
        }
    }
}

impl<K: Keep<ValidMr>> Gather<K> {
    /// A part of a region. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region doesn't have that part.
    pub fn part(mr: K, part: Range<u64>) -> Result<Self> {
        let segment = segment(mr.get(), part)?;
        let written = mr.get().access().contains(Access::LocalWrite);
        // INVARIANT: The region has its memory as long as it is kept.
        Ok(Self {
            bytes: segment.length.into(),
            segments: one(segment),
            kept: mr,
            written,
            inline: false,
        })
    }
}

impl<K: Keep<ValidMr>> Gather<Few<K>> {
    /// Parts of regions, one behind the other. For more than one that takes memory; doesn't sleep
    /// if `flags` don't allow it.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if a region doesn't have its part.
    /// - `ENOMEM`
    pub fn parts(
        parts: impl ExactSizeIterator<Item = (K, Range<u64>)>,
        flags: Flags,
    ) -> Result<Self> {
        // INVARIANT: The regions have their memory as long as they are kept, which each is that a
        // segment was made of.
        let mut this = Self {
            segments: Few::with_capacity(parts.len(), flags)?,
            kept: Few::with_capacity(parts.len(), flags)?,
            bytes: 0,
            written: true,
            inline: false,
        };
        for (mr, part) in parts {
            let segment = segment(mr.get(), part)?;
            let length = segment.length;
            this.written &= mr.get().access().contains(Access::LocalWrite);
            this.bytes += u64::from(length);
            if length > 0 {
                let pushed = this.segments.push_within_capacity(segment);
                pushed.map_err(|_| EINVAL)?;
            }
            let pushed = this.kept.push_within_capacity(mr);
            pushed.map_err(|_| EINVAL)?;
        }
        Ok(this)
    }
}

/// Bytes that belong to a request, mapped for the device unless its driver copies them.
pub type Copied = (Option<Buffer>, KVec<u8>);

impl Gather<Copied> {
    /// Makes a gather of bytes that go with a request on `qp`. The driver copies them when the request
    /// is posted, if its [limit](Qp::inline_limit) permits. Otherwise the device reads them. Any
    /// context; does not sleep if `flags` do not allow it.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there are too many for any device.
    /// - `EIO` if they cannot be mapped.
    /// - `ENOMEM`
    pub fn copied<S>(qp: &Qp<S>, bytes: KVec<u8>, flags: Flags) -> Result<Self> {
        let len = u32::try_from(bytes.len())?;
        if len <= qp.inline_limit() {
            return Ok(Self::inline(bytes, len));
        }
        // SAFETY: `bytes` are memory of kmalloc(), so they have an address in the linear map.
        let phys = unsafe { b::rdma_helper_physical_address(bytes.as_ptr().cast_mut().cast()) };
        let len = len.into();
        // SAFETY: `bytes` are kept behind the buffer, which is dropped first. The device only reads.
        let memory = unsafe {
            Gather::lent(
                qp.pd(),
                iter::once(Piece::Memory { phys, len }),
                false,
                flags,
            )
        }?;
        Ok(memory.kept_by(|mapped| (Some(mapped), bytes)))
    }

    /// Makes a gather of `len` bytes that the driver copies.
    pub(crate) fn inline(bytes: KVec<u8>, len: u32) -> Self {
        let segment = b::ib_sge {
            // CAST: Drivers take the address of such bytes for the processor's.
            addr: bytes.as_ptr() as u64,
            length: len,
            lkey: 0,
        };
        // INVARIANT: The bytes stay where they are as long as they are kept, and are only read.
        Self {
            bytes: len.into(),
            segments: one(segment),
            kept: (None, bytes),
            written: false,
            inline: len > 0,
        }
    }
}

impl Gather<Buffer> {
    /// Memory that belongs to no region of this crate's, in pieces, mapped as long as it is kept; to
    /// be written to by the device, or read. For more than one piece that takes memory; doesn't
    /// sleep if `flags` don't allow it.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if a piece is too long for any device.
    /// - `EIO` if it can't be mapped.
    /// - `ENOMEM`
    ///
    /// # Safety
    ///
    /// Until the [`Buffer`] is dropped the memory must stay: the device may read it, and write to it
    /// if that is asked for. It must be of the device of `pd`, where it isn't plain memory.
    pub unsafe fn lent(
        pd: &Pd,
        pieces: impl ExactSizeIterator<Item = Piece>,
        written: bool,
        flags: Flags,
    ) -> Result<Self> {
        let mut segments = Few::with_capacity(pieces.len(), flags)?;
        let mut kept = Buffer::new(pd.device(), pieces.len(), written, flags)?;
        let mut bytes: u64 = 0;
        for piece in pieces {
            let segment = kept.add(pd.local_key(), piece)?;
            bytes = bytes.checked_add(segment.length.into()).ok_or(EINVAL)?;
            if segment.length > 0 {
                let pushed = segments.push_within_capacity(segment);
                pushed.map_err(|_| EINVAL)?;
            }
        }
        // INVARIANT: The memory stays as long as what is kept, which has it mapped, as the caller
        // promises.
        Ok(Self {
            segments,
            kept,
            bytes,
            written,
            inline: false,
        })
    }
}

impl<K> Gather<K> {
    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the device may write there.
    pub(crate) fn is_written(&self) -> bool {
        self.written
    }

    /// Whether the driver copies it.
    pub(crate) fn is_inline(&self) -> bool {
        self.inline
    }

    /// The same memory, where what keeps it there is kept by something else, which `f` makes of it and
    /// which drops it first of all.
    pub(crate) fn kept_by<T>(self, f: impl FnOnce(K) -> T) -> Gather<T> {
        // INVARIANT: The segments are the same, and what keeps them is kept.
        Gather {
            segments: self.segments,
            kept: f(self.kept),
            bytes: self.bytes,
            written: self.written,
            inline: self.inline,
        }
    }

    /// The segments, valid as long as this is, and where it is.
    pub(crate) fn segments(&self) -> &[b::ib_sge] {
        &self.segments
    }

    /// What keeps it there.
    pub fn into_kept(self) -> K {
        self.kept
    }

    /// The segments, and what keeps them there.
    pub(crate) fn into_parts(self) -> (Few<b::ib_sge>, K) {
        (self.segments, self.kept)
    }
}

/// A list of one segment, or none if that is empty: some devices take a length of 0 for the most
/// that there is.
fn one(segment: b::ib_sge) -> Few<b::ib_sge> {
    match segment.length {
        0 => Few::new(),
        _ => Few::one(segment),
    }
}

/// A part of a region.
fn segment(mr: &ValidMr, part: Range<u64>) -> Result<b::ib_sge> {
    let (addr, length) = part_of(mr.iova(), mr.length(), part)?;
    let lkey = mr.lkey();
    Ok(b::ib_sge { addr, length, lkey })
}

/// Address and length of a part of so many bytes at `iova`.
fn part_of(iova: u64, length: u64, part: Range<u64>) -> Result<(u64, u32)> {
    let len = part.end.checked_sub(part.start).ok_or(EINVAL)?;
    if part.end > length {
        return Err(EINVAL);
    }
    let address = iova.checked_add(part.start).ok_or(EINVAL)?;
    Ok((address, u32::try_from(len)?))
}

/// Eight bytes that a device writes to, and nobody reads.
pub type DiscardBuffer = (Buffer, KBox<u64>);

impl Gather<DiscardBuffer> {
    /// Eight bytes for what an atomic operation brings back, which nobody gets. Doesn't sleep if `flags`
    /// don't allow it.
    ///
    /// # Errors
    ///
    /// - `EIO` if they can't be mapped.
    /// - `ENOMEM`
    pub fn discard(pd: &Pd, flags: Flags) -> Result<Self> {
        let mut word = KBox::new(0, flags)?;
        // SAFETY: It is memory of the allocator's, which is in the linear map.
        let phys = unsafe { b::rdma_helper_physical_address((&raw mut *word).cast()) };
        let piece = Piece::Memory { phys, len: 8 };
        // SAFETY: The bytes are freed after what keeps them mapped.
        let memory = unsafe { Gather::lent(pd, iter::once(piece), true, flags) }?;
        Ok(memory.kept_by(|mapped| (mapped, word)))
    }
}

/// What keeps memory there.
pub enum AnyMemory {
    /// It was lent.
    Lent(Buffer),
    /// It is a copy.
    Copied(Copied),
    /// Nobody wants it.
    DiscardBuffer(DiscardBuffer),
}

impl From<Gather<Buffer>> for Gather<AnyMemory> {
    fn from(memory: Gather<Buffer>) -> Self {
        memory.kept_by(AnyMemory::Lent)
    }
}

impl From<Gather<Copied>> for Gather<AnyMemory> {
    fn from(memory: Gather<Copied>) -> Self {
        memory.kept_by(AnyMemory::Copied)
    }
}

impl From<Gather<DiscardBuffer>> for Gather<AnyMemory> {
    fn from(memory: Gather<DiscardBuffer>) -> Self {
        memory.kept_by(AnyMemory::DiscardBuffer)
    }
}

#[kernel::macros::kunit_tests(rdma_gather)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn no_more_than_the_region() {
        assert_eq!(part_of(0x1000, 8, 2..8), Ok((0x1002, 6)));
        assert_eq!(part_of(0x1000, 8, 8..8), Ok((0x1008, 0)));
        assert!(part_of(0x1000, 8, 2..9).is_err());
        assert!(part_of(0x1000, 8, 3..2).is_err());
        assert!(part_of(0, 1 << 40, 0..1 << 40).is_err());
    }

    #[test]
    fn bytes_to_be_copied() -> Result {
        let gather = Gather::inline(KVec::from_elem(7, 12, GFP_KERNEL)?, 12);
        assert_eq!((gather.bytes(), gather.segments().len()), (12, 1));
        assert!(gather.is_inline() && !gather.is_written());
        let nothing = Gather::inline(KVec::new(), 0);
        assert_eq!((nothing.bytes(), nothing.segments().len()), (0, 0));
        assert!(!nothing.is_inline());
        Ok(())
    }
}
