// SPDX-License-Identifier: GPL-2.0

//! Work requests, and the owners of their memory.

use kernel::prelude::*;

use core::ptr::NonNull;

use rdma_bindings as b;

use crate::{
    gather::Gather,
    in_flight::StableRef,
    mr::PreparedMr,
    raw_wr::RawWr,
    sg::DmaList, //
    small_vec::SmallVec,
};

/// A request for a send queue, not yet posted, with what keeps the things there that it refers to.
///
/// # Invariants
///
/// The memory of `raw` and `segments` is valid as long as `kept`. If `raw` is inline, only until it
/// has been posted.
///
/// # Examples
///
/// ```ignore
/// // The region is lent: it can be had back when the request has ended.
/// let lender = Lender::new(region)?;
/// let memory = Gather::part(lender.lend(), 0..4096)?;
/// let write = WorkRequest::write(memory, Remote { address, key }).fenced();
/// ```
pub struct WorkRequest<K> {
    raw: RawWr,
    segments: SmallVec<b::ib_sge>,
    kept: K,
}

/// A request for a receive queue, not yet posted, with what keeps its memory there.
///
/// # Invariants
///
/// The memory of `segments` is valid as long as `kept`.
pub struct Receive<K> {
    segments: SmallVec<b::ib_sge>,
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

/// The flag of requests whose bytes the driver copies.
const INLINE: u32 = b::ib_send_flags_IB_SEND_INLINE.unsigned_abs();

/// The length of what atomic operations go to, in bytes; its address is a multiple of that.
const ATOMIC: u64 = 8;

impl<K> WorkRequest<K> {
    /// Creates a request whose memory `kept` owns.
    pub(crate) fn new(opcode: b::ib_wr_opcode, kept: K, fill: impl FnOnce(&mut RawWr, &K)) -> Self {
        let mut raw = RawWr {
            opcode,
            ..Default::default()
        };
        fill(&mut raw, &kept);
        Self {
            raw,
            segments: SmallVec::new(),
            kept,
        }
    }

    /// Makes a region valid.
    pub(crate) fn register<L: DmaList>(mr: K) -> Self
    where
        K: StableRef<PreparedMr<L>>,
    {
        // INVARIANT: `raw` refers to the region, which is kept.
        Self::new(b::ib_wr_opcode_IB_WR_REG_MR, mr, |raw, mr| {
            raw.mr = NonNull::new(mr.get().as_raw());
            raw.access = mr.get().access().into();
        })
    }

    /// Makes the region with this key invalid, which is there as long as `kept`.
    pub(crate) fn invalidate_key(kept: K, key: u32) -> Self {
        // INVARIANT: `raw` refers to nothing but by a key.
        Self::new(b::ib_wr_opcode_IB_WR_LOCAL_INV, kept, |raw, _| raw.ex = key)
    }

    /// Sends memory to the peer.
    pub fn send(memory: Gather<K>) -> Self {
        Self::transfer(b::ib_wr_opcode_IB_WR_SEND, memory)
    }

    /// Sends memory to the peer, and a number that it gets with its completion.
    pub fn send_with_imm(memory: Gather<K>, imm: u32) -> Self {
        Self::transfer(b::ib_wr_opcode_IB_WR_SEND_WITH_IMM, memory).with_imm(imm)
    }

    /// Sends memory to the peer, whose device invalidates a key of its, and says so in the
    /// completion.
    pub fn send_with_inv(memory: Gather<K>, key: u32) -> Self {
        let mut this = Self::transfer(b::ib_wr_opcode_IB_WR_SEND_WITH_INV, memory);
        this.raw.ex = key;
        this
    }

    /// Writes memory to the peer's.
    pub fn write(memory: Gather<K>, to: Remote) -> Self {
        Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_WRITE, memory).at(to)
    }

    /// Writes memory to the peer's; a receive of the peer completes then, with a number.
    pub fn write_with_imm(memory: Gather<K>, to: Remote, imm: u32) -> Self {
        let this = Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM, memory);
        this.at(to).with_imm(imm)
    }

    /// Reads the peer's memory.
    ///
    /// # Errors
    ///
    /// `EACCES` if the device may not write to the memory that is read to.
    pub fn read(memory: Gather<K>, from: Remote) -> Result<Self> {
        check_written(&memory)?;
        Ok(Self::transfer(b::ib_wr_opcode_IB_WR_RDMA_READ, memory).at(from))
    }

    /// Reads the peer's memory into `segments` of memory that `kept` keeps. The device may write there.
    pub(crate) fn read_into(kept: K, segments: SmallVec<b::ib_sge>, from: Remote) -> Self {
        // INVARIANT: `kept` owns the memory of `segments`: only `Sink` calls this, with its own
        // segments.
        Self {
            segments,
            ..Self::new(b::ib_wr_opcode_IB_WR_RDMA_READ, kept, |_, _| ())
        }
        .at(from)
    }

    /// Sets 8 bytes of the peer's, in the peer's order, if they are as expected, at once. The
    /// memory gets what they were before.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if either memory isn't 8 bytes, the peer's aligned.
    /// - `EACCES` if the device may not write to the memory.
    pub fn compare_and_swap(
        memory: Gather<K>,
        at: Remote,
        expected: u64,
        new: u64,
    ) -> Result<Self> {
        let opcode = b::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP;
        let mut this = Self::atomic(opcode, memory, at)?;
        (this.raw.compare_add, this.raw.swap) = (expected, new);
        Ok(this)
    }

    /// Adds to 8 bytes of the peer's, in the peer's order, at once. The memory gets what they were
    /// before.
    ///
    /// # Errors
    ///
    /// The errors of [`WorkRequest::compare_and_swap`].
    pub fn fetch_and_add(memory: Gather<K>, at: Remote, by: u64) -> Result<Self> {
        let opcode = b::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD;
        let mut this = Self::atomic(opcode, memory, at)?;
        this.raw.compare_add = by;
        Ok(this)
    }

    /// Lets it wait until all reads and atomic operations before it have completed.
    pub fn fenced(self) -> Self {
        self.with_flag(b::ib_send_flags_IB_SEND_FENCE)
    }

    /// Has the peer interrupted, if it only asks for that.
    pub fn solicited(self) -> Self {
        self.with_flag(b::ib_send_flags_IB_SEND_SOLICITED)
    }

    fn transfer(opcode: b::ib_wr_opcode, memory: Gather<K>) -> Self {
        let flags = if memory.is_inline() { INLINE } else { 0 };
        let (segments, kept) = memory.into_parts();
        // INVARIANT: The segments refer to what is kept.
        Self {
            raw: RawWr {
                opcode,
                flags,
                ..Default::default()
            },
            segments,
            kept,
        }
    }

    fn atomic(opcode: b::ib_wr_opcode, memory: Gather<K>, at: Remote) -> Result<Self> {
        check_written(&memory)?;
        check_atomic(memory.bytes(), memory.segments().len(), at)?;
        Ok(Self::transfer(opcode, memory).at(at))
    }

    fn at(mut self, remote: Remote) -> Self {
        (self.raw.remote_address, self.raw.rkey) = (remote.address, remote.key);
        self
    }

    fn with_imm(mut self, imm: u32) -> Self {
        self.raw.ex = imm.to_be();
        self
    }

    fn with_flag(mut self, flag: b::ib_send_flags) -> Self {
        self.raw.flags |= flag.unsigned_abs();
        self
    }

    /// Returns the structure to post, valid as long as `self` is not moved.
    pub(crate) fn raw(&self) -> RawWr {
        RawWr {
            segments: &self.segments[..],
            ..self.raw
        }
    }

    /// Returns how many bytes the driver has to copy, at addresses that mean nothing to a device.
    pub(crate) fn inline_bytes(&self) -> u32 {
        match self.raw.flags & INLINE {
            0 => 0,
            _ => self.segments.iter().map(|segment| segment.length).sum(),
        }
    }

    /// Returns the owner of the memory, after the request has completed.
    pub fn into_kept(self) -> K {
        self.kept
    }
}

impl WorkRequest<()> {
    /// Creates a write of no bytes, which needs no key of the peer, like that of `__ib_drain_sq()`.
    pub(crate) fn empty() -> Self {
        // INVARIANT: It refers to nothing.
        Self::new(b::ib_wr_opcode_IB_WR_RDMA_WRITE, (), |_, ()| ())
    }
}

impl<K> Receive<K> {
    /// Takes what the peer sends to memory.
    ///
    /// # Errors
    ///
    /// `EACCES` if the device may not write there.
    pub fn new(memory: Gather<K>) -> Result<Self> {
        check_written(&memory)?;
        let (segments, kept) = memory.into_parts();
        // INVARIANT: The segments refer to what is kept.
        Ok(Self { segments, kept })
    }

    /// Returns the structure to post, valid as long as `self` is not moved.
    pub(crate) fn raw(&self) -> RawWr {
        RawWr {
            receive: true,
            segments: &self.segments[..],
            ..Default::default()
        }
    }

    /// Returns the owner of the memory, after the request has completed.
    pub fn into_kept(self) -> K {
        self.kept
    }
}

/// Checks that the device may write to memory.
fn check_written<K>(memory: &Gather<K>) -> Result {
    if memory.is_written() {
        Ok(())
    } else {
        Err(EACCES)
    }
}

/// Checks what atomic operations go to.
fn check_atomic(bytes: u64, segments: usize, at: Remote) -> Result {
    if bytes == ATOMIC && segments == 1 && at.address % ATOMIC == 0 {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

#[kernel::macros::kunit_tests(rdma_wr)]
mod tests {
    use super::*;

    #[test]
    fn atomic_operations_go_to_words() {
        let at = |address| Remote { address, key: 1 };
        assert!(check_atomic(8, 1, at(0x1008)).is_ok());
        assert!(check_atomic(8, 1, at(0x1004)).is_err());
        assert!(check_atomic(4, 1, at(0x1008)).is_err());
        assert!(check_atomic(8, 2, at(0x1008)).is_err());
    }

    #[test]
    fn what_is_asked_for() {
        let none = Gather::none;
        let raw = WorkRequest::send_with_imm(none(), 0x0102_0304).raw();
        assert_eq!(raw.opcode, b::ib_wr_opcode_IB_WR_SEND_WITH_IMM);
        assert_eq!(raw.ex.to_ne_bytes(), [1, 2, 3, 4]);
        let raw = WorkRequest::send_with_inv(none(), 7)
            .solicited()
            .fenced()
            .raw();
        assert_eq!((raw.ex, raw.flags), (7, 4 | 1));
        let to = Remote { address: 9, key: 5 };
        let raw = WorkRequest::write_with_imm(none(), to, 1).raw();
        assert_eq!((raw.remote_address, raw.rkey), (9, 5));
        assert!(WorkRequest::fetch_and_add(none(), to, 1).is_err());
        assert!(Receive::new(none()).is_ok_and(|it| it.raw().receive));
        let bytes = || KVec::from_elem(0, 3, GFP_KERNEL).map(|bytes| Gather::inline(bytes, 3));
        if let Ok(bytes) = bytes() {
            let request = WorkRequest::send(bytes);
            assert_eq!((request.raw().flags, request.inline_bytes()), (8, 3));
        }
        if let Ok(bytes) = bytes() {
            assert!(WorkRequest::read(bytes, to).is_err_and(|e| e == EACCES));
        }
    }
}
