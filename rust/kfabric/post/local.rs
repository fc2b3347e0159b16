// SPDX-License-Identifier: GPL-2.0

//! The local memory of a transfer: as the consumer gives it, and as the device gets it. Regions by their
//! descriptors.
//!
//! A C helper copies memory by the processor, since others may read and change it meanwhile.

mod kunit;

use super::op::Op;
use crate::{
    prelude::*,
    region::{
        access::Access,
        extents::{
            MappedAs,
            PageUse, //
        },
        segment_list::{
            SegmentList,
            Source, //
        }, //
    },
    support::vec::ArrayVec, //
};
use kfi_bindings::{
    kfi_iov_type,
    kfi_iov_type_KFI_BVEC as BVEC,
    kfi_iov_type_KFI_KVEC as KVEC,
    kfi_iov_type_KFI_SGL as SGL, //
};

/// A list of buffers, and the descriptors that go with them.
///
/// # Invariants
///
/// There are no descriptors, or as many as segments.
pub(crate) struct Buffers<'a> {
    /// `None` for a transfer of no bytes.
    pub(super) source: Option<Source<'a>>,
    descs: &'a [*mut c_void],
}

impl<'a> Buffers<'a> {
    /// Makes a list of one buffer with the descriptor `desc`. The caller keeps `kvec`, since lists
    /// are borrowed.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the buffer is NULL, but not empty.
    pub(crate) fn one(kvec: &'a kvec, desc: &'a *mut c_void) -> Result<Self, Refusal> {
        if kvec.iov_len == 0 {
            return Ok(Self::none());
        }
        // INVARIANT: One of each, or no descriptor.
        Ok(Self {
            source: Some(Source::buffer(kvec)?),
            descs: match desc.is_null() {
                true => &[],
                false => slice::from_ref(desc),
            },
        })
    }

    /// Creates a list of `count` segments of the type `kind`, with their descriptors, if there are any.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the type is unknown, or the list is NULL but not empty.
    ///
    /// # Safety
    ///
    /// - `list` is null, or has `count` entries of the type `kind` that nobody changes for `'a`.
    /// - `descs` is null, or has `count` entries that nobody changes for `'a`.
    pub(crate) unsafe fn list(
        kind: kfi_iov_type,
        list: *const c_void,
        descs: *const *mut c_void,
        count: usize,
    ) -> Result<Self, Refusal> {
        // SAFETY: `list` is null or has `count` entries of this type that nobody changes for `'a`.
        let source = unsafe {
            match kind {
                KVEC | BVEC | SGL if count == 0 => return Ok(Self::none()),
                KVEC => Source::Kvec(SegmentList::from_raw(list.cast(), count)?),
                BVEC => Source::Bvec(SegmentList::from_raw(list.cast(), count)?),
                SGL => Source::Sgl(SegmentList::from_raw(list.cast(), count)?),
                other => {
                    let refusal = Refusal::new(Errno::EINVAL, c"unknown type of list");
                    return Err(refusal.value(other.into()));
                }
            }
        };
        // INVARIANT: As many, or none.
        Ok(Self {
            source: Some(source),
            descs: match descs.is_null() {
                true => &[],
                // SAFETY: `descs` is not null, so it has `count` entries for `'a`, as the caller
                // promises. The slice has at most `MAX_PIECES + 1` of them. A longer list is
                // refused before its descriptors are read.
                false => unsafe { slice::from_raw_parts(descs, count.min(MAX_PIECES + 1)) },
            },
        })
    }

    /// Makes an empty list.
    pub(crate) const fn none() -> Self {
        // INVARIANT: None of either.
        Self {
            source: None,
            descs: &[],
        }
    }

    /// Returns the descriptor of a segment; `None` if it has none.
    fn desc(&self, index: usize) -> Option<usize> {
        let desc = self.descs.get(index)?;
        (!desc.is_null()).then(|| desc.addr())
    }

    /// Checks whether no segment has a descriptor.
    fn is_bare(&self) -> bool {
        self.descs.iter().all(|desc| desc.is_null())
    }
}

/// Memory that is contiguous to the device.
///
/// The consumer leaves it where it is until the transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalPiece {
    /// A part of a region, whose rights are those that the transfer needs.
    Region {
        /// Its descriptor.
        desc: usize,
        /// The address for the device.
        address: u64,
        /// In bytes.
        len: u64,
    },
    /// Memory of this machine that may be registered for what the transfer needs.
    Memory {
        /// The physical address.
        phys: u64,
        /// In bytes.
        len: u64,
    },
    /// Memory that the consumer has mapped for the domain's device.
    Mapped {
        /// The address for the device.
        address: u64,
        /// In bytes.
        len: u64,
    },
}

impl LocalPiece {
    /// Returns `len` of its bytes, from the one at `at` on.
    const fn part(self, at: u64, len: u64) -> Self {
        match self {
            Self::Region { desc, address, .. } => Self::Region {
                desc,
                address: address + at,
                len,
            },
            Self::Memory { phys, .. } => Self::Memory {
                phys: phys + at,
                len,
            },
            Self::Mapped { address, .. } => Self::Mapped {
                address: address + at,
                len,
            },
        }
    }

    /// Returns the number of bytes.
    pub const fn bytes(&self) -> u64 {
        match *self {
            Self::Region { len, .. } | Self::Memory { len, .. } | Self::Mapped { len, .. } => len,
        }
    }
}

/// The pieces of a transfer, in order.
#[derive(Clone, Copy, Debug)]
pub struct LocalPieces {
    pieces: ArrayVec<LocalPiece, MAX_PIECES>,
    bytes: u64,
}

impl LocalPieces {
    /// Makes a list of no memory.
    #[inline]
    pub(crate) fn none() -> Self {
        Self {
            pieces: ArrayVec::new(),
            bytes: 0,
        }
    }

    /// Returns the pieces.
    pub fn pieces(&self) -> &[LocalPiece] {
        &self.pieces
    }

    /// Returns `len` of the bytes, from `at` on, or those that there are.
    pub(crate) fn part(&self, at: u64, len: u64) -> Self {
        let mut part = Self::none();
        let (mut skip, mut left) = (at, len);
        for piece in self.pieces() {
            let here = left.min(piece.bytes().saturating_sub(skip));
            if here > 0 && part.pieces.push(piece.part(skip, here)).is_ok() {
                part.bytes += here;
            }
            skip = skip.saturating_sub(piece.bytes());
            left -= here;
        }
        part
    }

    /// Returns the number of bytes of all pieces together.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Does a piece go by the descriptor of a region?
    pub(crate) fn has_regions(&self) -> bool {
        let is_region = |piece: &LocalPiece| matches!(piece, LocalPiece::Region { .. });
        self.pieces().iter().any(is_region)
    }

    /// Returns the memory itself, of pieces that don't go by a region. The domain's mapped
    /// addresses must be physical ones or of the linear map.
    ///
    /// # Safety
    ///
    /// It is not used after the transfer has ended.
    pub(crate) unsafe fn parts(&self) -> impl Iterator<Item = LinearExtent> + '_ {
        self.pieces().iter().filter_map(|piece| match *piece {
            LocalPiece::Memory { phys, len } => Some(LinearExtent {
                // SAFETY: The function computes the address. By the contract of kfi_msg(3), the consumer's
                // memory is in the linear map.
                start: unsafe { kfi_bindings::kfi_helper_linear_address(phys) },
                len: usize::try_from(len).ok()?,
            }),
            _ => None,
        })
    }

    /// Copies as many bytes as it has to another's memory, or as many as that has. The two may overlap.
    ///
    /// # Safety
    ///
    /// Neither transfer has ended, and the other's memory may be written to.
    pub(crate) unsafe fn copy_to(&self, to: &Self) {
        // SAFETY: Neither transfer has ended, as the caller promises. The parts are used in this
        // call only.
        let (mut from, mut to) = unsafe { (self.parts(), to.parts()) };
        let (mut source, mut target) = (from.next(), to.next());
        while let (Some(here), Some(there)) = (source, target) {
            let len = here.len.min(there.len);
            // SAFETY: `here` and `there` have at least `len` bytes: it is the lesser length. The
            // caller promises that `to` may be written to. `kfi_helper_move()` allows overlap.
            unsafe { kfi_bindings::kfi_helper_move(there.start, here.start, len) };
            source = here.after(len).or_else(|| from.next());
            target = there.after(len).or_else(|| to.next());
        }
    }

    /// Fills an empty list with the pieces for the device, from a consumer's buffers. Returns the number of
    /// bytes. `find` returns the region of a descriptor. Any context.
    ///
    /// # Errors
    ///
    /// - The errors of [`check`](Self::check).
    /// - `EFAULT`: memory that can't be registered, for example NULL.
    /// - `E2BIG`: more pieces of memory than one transfer may have; a region would be one.
    pub(crate) fn find(
        &mut self,
        buffers: &Buffers<'_>,
        op: &Op,
        rules: &LocalRules,
        find: impl Fn(usize) -> Result<DescMr, Refusal>,
    ) -> Result<u64, Refusal> {
        if !self.check(buffers, op, rules, find)? {
            self.pieces.clear();
            if let Some(source) = &buffers.source {
                self.find_memory(source, op, rules)?;
            }
        }
        Ok(self.bytes)
    }

    /// Checks each segment of a consumer's buffers and its descriptor, and adds up their bytes. Returns
    /// whether each of them goes by its region; then these are the pieces. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: a segment is empty, or not in the region of its descriptor; there is no region
    ///   with that descriptor; there are too many segments; their sum overflows.
    /// - `EACCES`: a region was not registered for that.
    /// - `EMSGSIZE`: more bytes than one transfer may have.
    /// - `E2BIG`: more regions than one transfer may have pieces.
    pub(super) fn check(
        &mut self,
        buffers: &Buffers<'_>,
        op: &Op,
        rules: &LocalRules,
        find: impl Fn(usize) -> Result<DescMr, Refusal>,
    ) -> Result<bool, Refusal> {
        let Some(source) = &buffers.source else {
            return Ok(true);
        };
        let mut by_region = rules.by_region && !buffers.is_bare();
        source.each(rules.segments, |index, start, len| {
            if len == 0 {
                return Err(Refusal::new(Errno::EINVAL, c"segment of length 0"));
            }
            let sum = self.bytes.checked_add(len);
            self.bytes = sum.ok_or(Refusal::new(Errno::EINVAL, c"sum of lengths overflows"))?;
            let Some(desc) = buffers.desc(index) else {
                by_region = false;
                return Ok(());
            };
            let region = find(desc)?;
            region.check_rights(needs(op))?;
            match region.address(start, len)? {
                Some(address) if by_region && region.whole => {
                    self.push(LocalPiece::Region { desc, address, len }, rules)?;
                }
                _ => by_region = false,
            }
            Ok(())
        })?;
        if self.bytes > rules.bytes {
            let refusal = Refusal::new(Errno::EMSGSIZE, c"more bytes than max_msg_size");
            return Err(refusal.value(self.bytes));
        }
        Ok(by_region)
    }

    /// Finds the memory itself, and checks that it may be registered.
    fn find_memory(
        &mut self,
        source: &Source<'_>,
        op: &Op,
        rules: &LocalRules,
    ) -> Result<(), Refusal> {
        if let (Source::Sgl(list), MappedAs::Device) = (source, rules.mapped) {
            return self.push_mapped(list, rules);
        }
        let memory = PageUse {
            writes: op.writes_local(),
            peer_to_peer: rules.peer_to_peer,
        };
        let mut runs = source.extents(memory, rules.mapped);
        while !runs.is_at_end() {
            for run in runs.next_extents(u64::MAX)? {
                let (phys, len) = (run.raw.phys, run.raw.len);
                self.push(LocalPiece::Memory { phys, len }, rules)?;
            }
        }
        Ok(())
    }

    /// Adds a list that is mapped to addresses which only the device knows.
    fn push_mapped(
        &mut self,
        list: &SegmentList<'_, scatterlist>,
        rules: &LocalRules,
    ) -> Result<(), Refusal> {
        for (index, span) in list.device_spans().enumerate() {
            let span = span.map_err(|e| e.at(index))?;
            let (address, len) = (span.start(), span.bytes());
            self.push(LocalPiece::Mapped { address, len }, rules)?;
        }
        Ok(())
    }

    fn push(&mut self, piece: LocalPiece, rules: &LocalRules) -> Result<(), Refusal> {
        let too_many = Refusal::new(Errno::E2BIG, c"memory in too many pieces, not registered");
        let most = rules.pieces.min(MAX_PIECES);
        let too_many = too_many.value(widen(most));
        if self.pieces.len() >= most {
            return Err(too_many);
        }
        self.pieces.push(piece).map_err(|_| too_many)
    }
}

/// Returns the right that an operation needs for its local memory.
const fn needs(op: &Op) -> Access {
    match op {
        Op::Send { .. } => Access::SEND,
        Op::Receive => Access::RECV,
        Op::Read | Op::Atomic { fetches: true, .. } => Access::READ,
        Op::Write { .. } | Op::Atomic { .. } => Access::WRITE,
    }
}

/// A region that has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescMr {
    /// Where its first byte is for the kernel, if it is one range of addresses there.
    pub(crate) start: Option<u64>,
    /// The address of that byte for the device.
    pub(crate) base: u64,
    /// How many bytes it has.
    pub(crate) len: u64,
    /// The rights of the region.
    pub(crate) access: Access,
    /// Is it one region of the device?
    pub(crate) whole: bool,
}

impl DescMr {
    /// Returns the device's address of a segment in the region; `None` if the address is unknown.
    pub(super) fn address(&self, start: Option<u64>, len: u64) -> Result<Option<u64>, Refusal> {
        let (Some(first), Some(start)) = (self.start, start) else {
            return Ok(None);
        };
        let at = start.checked_sub(first);
        match at.and_then(|at| at.checked_add(len)) {
            Some(end) if end <= self.len => Ok(at.map(|at| self.base.wrapping_add(at))),
            _ => {
                let refusal =
                    Refusal::new(Errno::EINVAL, c"not within the region of its descriptor");
                Err(refusal.value(start))
            }
        }
    }

    /// Checks that the region was registered with the rights for a transfer. Memory that the device
    /// only reads needs no right, as in ibv_reg_mr(3).
    pub(super) fn check_rights(&self, needs: Access) -> Result<(), Refusal> {
        if needs.device_writes() && !self.access.device_writes() {
            let refusal = Refusal::new(Errno::EACCES, c"the region may not be written to");
            return Err(refusal.value(needs.bits()));
        }
        Ok(())
    }
}

/// Some bytes of memory, by their address in the linear map.
#[derive(Clone, Copy)]
pub(crate) struct LinearExtent {
    pub(super) start: *mut c_void,
    pub(super) len: usize,
}

impl LinearExtent {
    pub(crate) const fn as_ptr(&self) -> *mut c_void {
        self.start
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes behind the first `len`, if there are any.
    pub(super) fn after(self, len: usize) -> Option<Self> {
        (len < self.len).then(|| Self {
            start: self.start.wrapping_byte_add(len),
            len: self.len - len,
        })
    }

    /// Copies `from` to the first bytes.
    ///
    /// # Safety
    ///
    /// There are at least `from.len()` bytes, and they may be written to.
    pub(crate) unsafe fn write(&self, from: &[u8]) {
        // SAFETY: `self.start` points to at least `from.len()` bytes that may be written to, as the
        // caller promises. `from` is a slice of that length.
        unsafe { kfi_bindings::kfi_helper_move(self.start, from.as_ptr().cast(), from.len()) };
    }
}

/// Most pieces of one transfer.
pub(crate) const MAX_PIECES: usize = 16;

/// Most bytes that one transfer can inject.
pub const MAX_INJECT: usize = 64;

/// The rules of a domain for memory at this side; constant.
#[derive(Clone, Copy, Debug)]
pub struct LocalRules {
    /// A part of a region goes by the region's descriptor. Otherwise its memory is found each time.
    pub by_region: bool,
    /// The kind of addresses in a mapped scatterlist.
    pub mapped: MappedAs,
    /// The device may be able to reach memory of other PCI devices.
    pub peer_to_peer: bool,
    /// Most segments.
    pub segments: usize,
    /// Most pieces; at most 16.
    pub pieces: usize,
    /// Most bytes.
    pub bytes: u64,
}
