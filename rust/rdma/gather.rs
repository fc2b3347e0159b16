// SPDX-License-Identifier: GPL-2.0

//! Local memory of work requests, in segments.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_sge`
//!
//! The device reaches memory outside of regions by the local key of the domain, which no peer can use.
//! Unlike the mapping of a region, that mapping may be copied or flushed: the device has finished before
//! anybody reads the memory.

use crate::{
    access::Access,
    in_flight::StableRef,
    prelude::*,
    qp::Qp,
    segments::Segments, //
};
use core::ops::Range;
use kernel::{
    alloc::Flags,
    dma::DataDirection, //
};
use rdma_bindings as b;

/// Memory that a work request goes to or comes from, in segments, with what keeps it there.
///
/// # Invariants
///
/// A device may read what `segments` name, and write there if `written`, as long as `kept` is
/// there; if `inline`, only a driver may read it, at the addresses of the processor.
pub struct Gather<K> {
    pub(crate) segments: Segments,
    pub(crate) kept: K,
    bytes: u64,
    /// The device may write to the memory.
    pub(crate) written: bool,
    /// The driver copies the memory.
    pub(crate) inline: bool,
}

impl Gather<()> {
    /// Creates an empty gather, for messages without data.
    pub fn none() -> Self {
        // INVARIANT: There are no segments.
        Self {
            segments: Segments::new(),
            kept: (),
            bytes: 0,
            written: true,
            inline: false,
        }
    }
}

impl<K: StableRef<ValidMr>> Gather<K> {
    /// Creates a gather from a part of a region. Any context.
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

impl<K: StableRef<ValidMr>> Gather<SmallVec<K>> {
    /// Creates a gather from parts of regions. More than one part allocates memory. Does not sleep
    /// if `flags` do not allow it.
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
            segments: Segments::with_capacity(parts.len(), flags)?,
            kept: SmallVec::with_capacity(parts.len(), flags)?,
            bytes: 0,
            written: true,
            inline: false,
        };
        for (mr, part) in parts {
            this.add(segment(mr.get(), part)?)?;
            this.written &= mr.get().access().contains(Access::LocalWrite);
            let pushed = this.kept.push_within_capacity(mr);
            pushed.map_err(|_| EINVAL)?;
        }
        Ok(this)
    }
}

impl Gather<Buffer> {
    /// Creates a gather of memory outside of this crate's regions, with capacity for `count` segments.
    /// The device writes to it if `written`. More than two segments allocate memory. Does not sleep if
    /// `flags` do not allow it.
    #[inline]
    pub fn with_capacity(pd: &Pd, count: usize, written: bool, flags: Flags) -> Result<Self> {
        // INVARIANT: There are no segments.
        Ok(Self {
            segments: Segments::with_capacity(count, flags)?,
            kept: Buffer::new(&pd.device, count, written, flags)?,
            bytes: 0,
            written,
            inline: false,
        })
    }

    /// Adds memory that the device has: a part of a region by the local key of the region, or mapped
    /// memory by the [key](Pd::local_key) of the domain. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory is too long for any device, or there is no capacity.
    ///
    /// # Safety
    ///
    /// The memory must stay valid until the [`Buffer`] is dropped. The device may read it, and write to
    /// it if that was asked for.
    pub unsafe fn push(&mut self, lkey: u32, address: u64, len: u64) -> Result {
        let length = u32::try_from(len)?;
        // INVARIANT: The memory is valid as long as the buffer by the function's contract.
        self.add(b::ib_sge {
            addr: address,
            length,
            lkey,
        })
    }

    /// Maps plain memory for the device of `pd`, and adds it. Any context.
    ///
    /// # Errors
    ///
    /// - `EIO`: it can't be mapped.
    /// - The errors of [`push`](Self::push).
    ///
    /// # Safety
    ///
    /// The memory must have pages. The requirements of [`push`](Self::push).
    pub unsafe fn map(&mut self, pd: &Pd, phys: u64, len: u64) -> Result {
        // SAFETY: The memory has pages, and is valid as long as the buffer, by the function's contract.
        let address = unsafe { self.kept.map(phys, len) }?;
        // SAFETY: The buffer has the memory mapped, which is valid by the function's contract.
        unsafe { self.push(pd.local_key, address, len) }
    }

    /// Creates a gather of bytes that go with a request on `qp`. The driver copies them when the request
    /// is posted, if its [limit](crate::qp::Depths::inline) permits. Otherwise the device reads them. Any
    /// context; does not sleep if `flags` do not allow it.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there are too many for any device.
    /// - `EIO`: they can't be mapped.
    /// - `ENOMEM`
    pub fn copied<S>(qp: &Qp<S>, bytes: KVec<u8>, flags: Flags) -> Result<Self> {
        let len = u32::try_from(bytes.len())?;
        match len <= qp.raw.inline {
            true => Ok(Self::inline(bytes, len)),
            false => Self::owned(qp.pd(), bytes, false, flags),
        }
    }

    /// Allocates eight bytes for the discarded result of an atomic operation. Does not sleep if
    /// `flags` do not allow it.
    ///
    /// # Errors
    ///
    /// - `EIO`: they can't be mapped.
    /// - `ENOMEM`
    pub fn discard(pd: &Pd, flags: Flags) -> Result<Self> {
        // kmalloc() aligns eight bytes to eight.
        Self::owned(pd, KVec::from_elem(0, 8, flags)?, true, flags)
    }

    /// Maps bytes of its own.
    fn owned(pd: &Pd, bytes: KVec<u8>, written: bool, flags: Flags) -> Result<Self> {
        let mut this = Self::with_capacity(pd, 1, written, flags)?;
        // SAFETY: `bytes` are memory of kmalloc(), so they have an address in the linear map.
        let phys = unsafe { b::rdma_helper_physical_address(bytes.as_ptr().cast_mut().cast()) };
        let len = u64::try_from(bytes.len())?;
        // SAFETY: `bytes` are memory of kmalloc(), which has pages. The buffer frees them after it has
        // unmapped them.
        let mapped = unsafe { this.map(pd, phys, len) };
        this.kept.bytes = Some(bytes);
        mapped.map(|()| this)
    }

    /// Creates a gather of `len` bytes that the driver copies.
    pub(crate) fn inline(bytes: KVec<u8>, len: u32) -> Self {
        let segment = b::ib_sge {
            // CAST: Drivers use the address of inline bytes as a virtual address of the processor.
            addr: bytes.as_ptr() as u64,
            length: len,
            lkey: 0,
        };
        // INVARIANT: The bytes stay where they are as long as they are kept, and are only read.
        Self {
            bytes: len.into(),
            segments: one(segment),
            kept: Buffer::unmapped(Some(bytes)),
            written: false,
            inline: len > 0,
        }
    }
}

impl<K> Gather<K> {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a segment, unless it is empty: some devices use length 0 for their maximum.
    fn add(&mut self, segment: b::ib_sge) -> Result {
        self.bytes = self
            .bytes
            .checked_add(segment.length.into())
            .ok_or(EINVAL)?;
        match segment.length {
            0 => Ok(()),
            _ => self.segments.push(segment),
        }
    }
}

/// Creates a list of one segment, or an empty list for an empty segment: some devices use length 0
/// for their maximum.
fn one(segment: b::ib_sge) -> Segments {
    let mut segments = Segments::new();
    if segment.length > 0 {
        // There is space for two.
        let _ = segments.push(segment);
    }
    segments
}

/// Returns the segment for a part of a region.
fn segment(mr: &ValidMr, part: Range<u64>) -> Result<b::ib_sge> {
    let (addr, length) = part_of(mr.iova(), mr.length(), part)?;
    let lkey = mr.lkey();
    Ok(b::ib_sge { addr, length, lkey })
}

/// Returns the address and the length of a part of `length` bytes at `iova`.
fn part_of(iova: u64, length: u64, part: Range<u64>) -> Result<(u64, u32)> {
    let len = part.end.checked_sub(part.start).ok_or(EINVAL)?;
    if part.end > length {
        return Err(EINVAL);
    }
    let address = iova.checked_add(part.start).ok_or(EINVAL)?;
    Ok((address, u32::try_from(len)?))
}

/// The owner of the memory of a request: mappings, and bytes of its own. Dropping it unmaps them, in any
/// context.
///
/// # Invariants
///
/// Each entry of `mapped` is a mapping for `device` in `direction`. Only this type undoes it.
pub struct Buffer {
    /// [`None`] if nothing has to be mapped.
    device: Option<ARef<Device>>,
    mapped: Segments<Mapping>,
    direction: DataDirection,
    /// Freed after the memory has been unmapped.
    bytes: Option<KVec<u8>>,
}

/// The device address and the length of a mapping.
#[derive(Default)]
struct Mapping {
    address: u64,
    len: usize,
}

impl Buffer {
    /// Creates a buffer of bytes that need no mapping.
    #[inline]
    fn unmapped(bytes: Option<KVec<u8>>) -> Self {
        // INVARIANT: There is no mapping.
        Self {
            device: None,
            mapped: Segments::new(),
            direction: DataDirection::ToDevice,
            bytes,
        }
    }

    /// Creates a buffer with capacity for `count` mappings. The device writes to them if `written`.
    #[inline]
    fn new(device: &ARef<Device>, count: usize, written: bool, flags: Flags) -> Result<Self> {
        let mut this = Self::unmapped(None);
        if !device.is_software() {
            this.device = Some(device.clone());
            this.mapped = Segments::with_capacity(count, flags)?;
            if written {
                this.direction = DataDirection::FromDevice;
            }
        }
        Ok(this)
    }

    /// Maps memory, and returns its address for the device.
    ///
    /// # Safety
    ///
    /// The memory must have pages, and stay valid until this is dropped.
    unsafe fn map(&mut self, phys: u64, len: u64) -> Result<u64> {
        let Some(device) = &self.device else {
            // SAFETY: The memory has pages by the function's contract.
            return Ok(unsafe { b::rdma_helper_linear(phys) });
        };
        let len = usize::try_from(len)?;
        let (device, direction) = (device.as_raw(), self.raw_direction());
        let mut address = 0;
        // SAFETY: `device` is held. The memory has pages by the function's contract.
        if !unsafe { b::rdma_helper_dma_map(device, phys, len, direction, &mut address) } {
            return Err(EIO);
        }
        // INVARIANT: Just mapped.
        let pushed = self.mapped.push(Mapping { address, len });
        pushed.inspect_err(|_| self.unmap(&Mapping { address, len }))?;
        Ok(address)
    }

    fn unmap(&self, mapping: &Mapping) {
        if let Some(device) = &self.device {
            let (device, direction) = (device.as_raw(), self.raw_direction());
            // SAFETY: `mapping` is mapped for the device in this direction by the type invariant.
            // `device` is held. The request that used the mapping has ended.
            unsafe { b::rdma_helper_dma_unmap(device, mapping.address, mapping.len, direction) };
        }
    }

    fn raw_direction(&self) -> u32 {
        // CAST: The enum is `repr(u32)`, and its values are those of the C enum.
        self.direction as u32
    }

    /// Leaves the memory mapped and allocated, because the device may use it at any time. Releases the
    /// reference to the device, so that the device can be removed.
    pub(crate) fn leak(mut self) {
        self.mapped = Segments::new();
        mem::forget(mem::take(&mut self.bytes));
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.mapped.iter().for_each(|mapping| self.unmap(mapping));
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
        assert_eq!((gather.bytes(), gather.segments.len()), (12, 1));
        assert!(gather.inline && !gather.written);
        let nothing = Gather::inline(KVec::new(), 0);
        assert_eq!((nothing.bytes(), nothing.segments.len()), (0, 0));
        assert!(!nothing.inline);
        Ok(())
    }
}
