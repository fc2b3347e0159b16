// SPDX-License-Identifier: GPL-2.0

//! Work requests, and what they refer to.

use kernel::prelude::*;

use core::{
    ops::Range,
    ptr::NonNull, //
};

use rdma_bindings as b;

use crate::{
    access::Access,
    lend::Keep,
    mr::{
        PreparedMr,
        ValidMr, //
    },
    raw_wr::RawWr,
    sg::DmaList, //
};

/// A request for a send queue, not yet posted, with what keeps the things there that it refers to.
///
/// # Invariants
///
/// What `raw` refers to is there as long as `kept`.
pub struct WorkRequest<K> {
    raw: RawWr,
    kept: K,
}

/// A request for a receive queue, not yet posted, with what keeps its memory there.
///
/// # Invariants
///
/// What `raw` refers to is there as long as `kept`.
pub struct Receive<K> {
    raw: RawWr,
    kept: K,
}

/// Memory of a peer.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Its address there.
    pub address: u64,
    /// The key for it.
    pub key: u32,
}

impl<K> WorkRequest<K> {
    /// A request that refers to what `kept` keeps.
    fn new(opcode: b::ib_wr_opcode, kept: K, fill: impl FnOnce(&mut RawWr, &K)) -> Self {
        let mut raw = RawWr {
            opcode,
            ..Default::default()
        };
        fill(&mut raw, &kept);
        Self { raw, kept }
    }

    /// Makes a region valid.
    pub(crate) fn register<L: DmaList>(mr: K) -> Self
    where
        K: Keep<PreparedMr<L>>,
    {
        // INVARIANT: `raw` refers to the region, which is kept.
        Self::new(b::ib_wr_opcode_IB_WR_REG_MR, mr, |raw, mr| {
            raw.mr = NonNull::new(mr.get().as_raw());
            raw.access = mr.get().access().into();
        })
    }

    /// Makes a region invalid.
    pub(crate) fn invalidate(mr: K) -> Self
    where
        K: Keep<ValidMr>,
    {
        // INVARIANT: `raw` refers to the region, which is kept.
        Self::new(b::ib_wr_opcode_IB_WR_LOCAL_INV, mr, |raw, mr| {
            raw.rkey = mr.get().rkey();
        })
    }

    /// Sends a part of a region's memory to the peer.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region doesn't have that part.
    pub fn send(mr: K, part: Range<u64>) -> Result<Self>
    where
        K: Keep<ValidMr>,
    {
        Self::transfer(b::ib_wr_opcode_IB_WR_SEND, mr, part, None)
    }

    /// Writes a part of a region's memory to the peer's.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region doesn't have that part.
    pub fn write(mr: K, part: Range<u64>, to: Remote) -> Result<Self>
    where
        K: Keep<ValidMr>,
    {
        Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_WRITE, mr, part, Some(to))
    }

    /// Reads the peer's memory to a part of a region's.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the region doesn't have that part.
    /// - `EACCES` if the device may not write to it.
    pub fn read(mr: K, part: Range<u64>, from: Remote) -> Result<Self>
    where
        K: Keep<ValidMr>,
    {
        check_written(mr.get())?;
        Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_READ, mr, part, Some(from))
    }

    fn transfer(
        opcode: b::ib_wr_opcode,
        mr: K,
        part: Range<u64>,
        remote: Option<Remote>,
    ) -> Result<Self>
    where
        K: Keep<ValidMr>,
    {
        let (address, len) = segment(mr.get(), part)?;
        // INVARIANT: `raw` refers to the region and its memory, which are kept.
        Ok(Self::new(opcode, mr, |raw, mr| {
            (raw.address, raw.len, raw.lkey) = (address, len, mr.get().lkey());
            if let Some(remote) = remote {
                (raw.remote_address, raw.rkey) = (remote.address, remote.key);
            }
        }))
    }

    /// What is posted.
    pub(crate) fn raw(&self) -> RawWr {
        self.raw
    }

    /// What was kept for it, which has ended.
    pub fn into_kept(self) -> K {
        self.kept
    }
}

impl WorkRequest<()> {
    /// Does nothing, and does that only on a queue pair in error, where it is flushed.
    pub(crate) fn drain() -> Self {
        // INVARIANT: It refers to nothing. What `__ib_drain_sq()` posts.
        Self::new(b::ib_wr_opcode_IB_WR_RDMA_WRITE, (), |_, ()| ())
    }
}

impl<K: Keep<ValidMr>> Receive<K> {
    /// Takes what the peer sends to a part of a region's memory.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the region doesn't have that part.
    /// - `EACCES` if the device may not write to it.
    pub fn new(mr: K, part: Range<u64>) -> Result<Self> {
        check_written(mr.get())?;
        let (address, len) = segment(mr.get(), part)?;
        let raw = RawWr {
            receive: true,
            address,
            len,
            lkey: mr.get().lkey(),
            ..Default::default()
        };
        // INVARIANT: `raw` refers to the region and its memory, which are kept.
        Ok(Self { raw, kept: mr })
    }
}

impl<K> Receive<K> {
    /// What is posted.
    pub(crate) fn raw(&self) -> RawWr {
        self.raw
    }

    /// What was kept for it, which has ended.
    pub fn into_kept(self) -> K {
        self.kept
    }
}

/// Checks that the device may write to a region.
fn check_written(mr: &ValidMr) -> Result {
    if mr.access().contains(Access::LocalWrite) {
        Ok(())
    } else {
        Err(EACCES)
    }
}

/// Address and length of a part of a region.
fn segment(mr: &ValidMr, part: Range<u64>) -> Result<(u64, u32)> {
    part_of(mr.iova(), mr.length(), part)
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

#[kernel::macros::kunit_tests(rdma_wr)]
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
}
