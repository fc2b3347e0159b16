// SPDX-License-Identifier: GPL-2.0

//! Memory of a region that the processor reads and writes, on behalf of peers.
//!
//! [`CpuMemory`] is the memory of one region. A [`PeerBuffer`] is copied into it or out of it, and an
//! [`AtomicOp`] changes eight bytes of it.

use super::{
    access::Access,
    extents::MappedAs,
    lease::Tenant,
    request::MrRequest, //
};
use crate::prelude::*;
use kernel::page::PAGE_SIZE;
use kfi_bindings::{
    kfi_helper_atomic_op_KFI_HELPER_ATOMIC_ADD as ATOMIC_ADD,
    kfi_helper_atomic_op_KFI_HELPER_ATOMIC_COMPARE_SWAP as ATOMIC_COMPARE_SWAP,
    kfi_helper_atomic_op_KFI_HELPER_ATOMIC_WRITE as ATOMIC_WRITE, //
};

/// All bytes of a region in their order, wherever they are in memory.
///
/// It may be kept, and copied from and to, for as long as the region is open: so long the consumer
/// leaves the memory where it is. The core knows of it: once the region has been closed, or refreshed
/// by a newer one, or if the registration fails, nothing is copied any more. Closing waits for copies
/// that are under way.
///
/// # Invariants
///
/// The runs are in the order of `at`. The first one is at 0, and each ends where the next one
/// begins, or at `len`. Their physical addresses are memory that may be registered with the rights
/// of the request. It stays where it is while somebody is inside `tenant`.
pub struct CpuMemory {
    // Most regions are one run, which needs no memory of its own.
    first: ExtentStart,
    rest: KVVec<ExtentStart>,
    len: u64,
    access: Access,
    tenant: Tenant,
}

impl CpuMemory {
    /// Takes the memory of a request. May sleep.
    ///
    /// # Errors
    ///
    /// - `EFAULT`: memory may not be registered.
    /// - `EINVAL`: an address in a scatterlist is no memory of this machine, or the provider
    ///   doesn't [say](crate::MrLimits::leases) that it keeps memory.
    /// - `ENOMEM`
    pub fn new(request: &MrRequest<'_>) -> Result<Self, Refusal> {
        let mut building = Building::default();
        let mut memory = request.extents_at(MappedAs::Physical);
        while let runs @ [_, ..] = memory.next_extents(u64::MAX)? {
            for run in runs {
                building.add(run.phys(), run.bytes())?;
            }
        }
        let (first, rest, len) = building.done()?;
        // INVARIANT: `building` joined run to run, and the memory was checked before it was added.
        // The consumer keeps it while the region is open, see kfi_mr(3), and so long the core lets
        // tenants in.
        Ok(Self {
            first,
            rest,
            len,
            access: request.access(),
            tenant: request.tenant()?,
        })
    }

    /// Returns the length in bytes; not 0.
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// Returns the offset of the first byte in its page.
    pub fn page_offset(&self) -> u64 {
        self.first.phys % widen(PAGE_SIZE)
    }

    /// Returns the offset in the region at which each extent begins.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        (0..=self.rest.len()).filter_map(|index| self.run(index).map(|run| run.at))
    }

    fn run(&self, index: usize) -> Option<ExtentStart> {
        match index.checked_sub(1) {
            None => Some(self.first),
            Some(index) => self.rest.get(index).copied(),
        }
    }

    /// Checks whether a transfer that needs a right in `needs` may access `len` bytes at `at`.
    ///
    /// # Errors
    ///
    /// - `EACCES`: the region was registered without that right.
    /// - `EINVAL`: the access goes beyond the region.
    pub fn check(&self, at: u64, len: u64, needs: Access) -> Result<(), Refusal> {
        if !self.access.has_any(needs) {
            return Err(Refusal::new(
                Errno::EACCES,
                c"the region was registered without that right",
            ));
        }
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Refusal::new(Errno::EINVAL, c"beyond the region").value(at)),
        }
    }

    /// Copies between the bytes of the region from `at` on and a peer's buffer, in the direction of
    /// the transfer. Others may be copying the same bytes meanwhile. Any context.
    ///
    /// `EACCES` if the region was registered without that right or isn't there any more, `EINVAL` if
    /// it goes beyond the region; then nothing is copied.
    pub fn copy(&self, at: u64, transfer: PeerBuffer<'_>) -> Result<(), Refusal> {
        self.check(at, widen(transfer.len()), transfer.needs())?;
        let gone = Refusal::new(Errno::EACCES, c"the region is not there any more");
        let _inside = self.tenant.enter().ok_or(gone)?;
        let (mut at, mut left) = (at, transfer);
        // The run that has `at` is the last one that doesn't begin behind it.
        let mut index = self.rest.partition_point(|run| run.at <= at);
        while !left.is_empty() {
            let run = self.run(index).ok_or(Errno::EINVAL)?;
            let run_end = self.run(index + 1).map_or(self.len, |next| next.at);
            let here = usize::try_from(run_end - at).unwrap_or(usize::MAX);
            let (part, rest) = left.split_at(here);
            // SAFETY: By the invariant, the `part.len()` bytes at this address are memory that may
            // be registered with the region's rights. `check` has found the transfer's right among
            // them. The memory stays while `_inside` lives.
            unsafe { part.copy(run.phys + (at - run.at)) };
            (at, index, left) = (run_end, index + 1, rest);
        }
        Ok(())
    }

    /// Does something with the eight bytes of the region from `at` on, at once, and returns what they
    /// were before. Any context.
    ///
    /// # Errors
    ///
    /// Then nothing is done:
    ///
    /// - `EACCES`: no peer may write to the region, or it isn't there any more.
    /// - `EINVAL`: beyond the region, or not where the processor could do that.
    pub fn atomic(&self, at: u64, what: AtomicOp) -> Result<u64, Refusal> {
        let word = widen(WORD);
        self.check(at, word, Access::REMOTE_WRITE)?;
        let gone = Refusal::new(Errno::EACCES, c"the region is not there any more");
        let _inside = self.tenant.enter().ok_or(gone)?;
        let index = self.rest.partition_point(|run| run.at <= at);
        let run = self.run(index).ok_or(Errno::EINVAL)?;
        let run_end = self.run(index + 1).map_or(self.len, |next| next.at);
        let phys = run.phys + (at - run.at);
        if phys % word != 0 || run_end - at < word {
            let refusal = Refusal::new(Errno::EINVAL, c"no word of the processor's");
            return Err(refusal.value(at));
        }
        let (op, operand, expected) = match what {
            AtomicOp::Write(value) => (ATOMIC_WRITE, value, 0),
            AtomicOp::Add(by) => (ATOMIC_ADD, by, 0),
            AtomicOp::CompareSwap { expected, new } => (ATOMIC_COMPARE_SWAP, new, expected),
        };
        // SAFETY: By the invariant, the extent may be written to: `check` has found that right. The
        // word is aligned and within the extent. The memory stays while `_inside` lives.
        Ok(unsafe { kfi_bindings::kfi_helper_atomic(phys, op, operand, expected) })
    }
}

/// Where a run of memory begins: its offset in the region, and its physical address.
#[derive(Clone, Copy)]
struct ExtentStart {
    at: u64,
    phys: u64,
}

/// An extent that is being put together.
#[derive(Default)]
struct Building {
    first: Option<ExtentStart>,
    rest: KVVec<ExtentStart>,
    len: u64,
    /// Physical address behind the last byte.
    end: u64,
}

impl Building {
    /// Adds memory, which the caller has checked.
    fn add(&mut self, phys: u64, len: u64) -> Result<(), Refusal> {
        let run = ExtentStart { at: self.len, phys };
        if self.first.is_none() {
            self.first = Some(run);
        } else if self.end != phys {
            self.rest.push(run, GFP_KERNEL)?;
        }
        self.end = phys + len;
        self.len += len;
        Ok(())
    }

    /// Returns the first run, the other runs, and the length of all. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no memory.
    fn done(self) -> Result<(ExtentStart, KVVec<ExtentStart>, u64), Refusal> {
        Ok((self.first.ok_or(Errno::EINVAL)?, self.rest, self.len))
    }
}

/// Which way the bytes go, seen from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From the region to the buffer.
    Read,
    /// From the buffer to the region.
    Write,
}

/// Bytes of a peer that are to be copied into a region or out of it.
///
/// # Invariants
///
/// `buf` points to `len` bytes that are there for `'a`, may be read and, in the direction
/// `Direction::Read`, may be written. Others may change them meanwhile.
pub struct PeerBuffer<'a> {
    buf: *mut c_void,
    len: usize,
    direction: Direction,
    _buf: PhantomData<&'a [u8]>,
}

impl<'a> PeerBuffer<'a> {
    /// Describes `len` bytes that a peer writes to a region.
    ///
    /// # Safety
    ///
    /// `buf` points to `len` bytes that stay where they are for `'a`.
    pub unsafe fn write(buf: *const c_void, len: usize) -> Self {
        // INVARIANT: `buf` points to `len` bytes for `'a`, as the caller promises.
        Self {
            buf: buf.cast_mut(),
            len,
            direction: Direction::Write,
            _buf: PhantomData,
        }
    }

    /// Describes the buffer for `len` bytes that a peer reads from a region.
    ///
    /// # Safety
    ///
    /// `buf` points to `len` bytes that stay where they are for `'a` and may be written to.
    pub unsafe fn read(buf: *mut c_void, len: usize) -> Self {
        // INVARIANT: `buf` points to `len` bytes for `'a` that may be written to, as the caller
        // promises.
        Self {
            buf,
            len,
            direction: Direction::Read,
            _buf: PhantomData,
        }
    }

    /// Describes bytes that a peer writes to a region.
    pub fn write_slice(bytes: &'a [u8]) -> Self {
        // SAFETY: A slice is what a write needs.
        unsafe { Self::write(bytes.as_ptr().cast(), bytes.len()) }
    }

    /// Describes the buffer for bytes that a peer reads from a region.
    pub fn read_slice(bytes: &'a mut [u8]) -> Self {
        // SAFETY: A mutable slice is what a read needs.
        unsafe { Self::read(bytes.as_mut_ptr().cast(), bytes.len()) }
    }

    /// Returns the number of bytes to copy.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Checks whether there is nothing to copy.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the right that a region must have for the copy.
    pub const fn needs(&self) -> Access {
        match self.direction {
            Direction::Read => Access::REMOTE_READ,
            Direction::Write => Access::REMOTE_WRITE,
        }
    }

    /// Splits the buffer into the first `at` bytes, or all that there are, and the rest.
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let at = at.min(self.len);
        // INVARIANT: Each has its part of the bytes.
        let rest = Self {
            buf: self.buf.wrapping_byte_add(at),
            len: self.len - at,
            ..self
        };
        (Self { len: at, ..self }, rest)
    }

    /// Copies everything, from or to the physical addresses from `phys` on. Any context.
    ///
    /// # Safety
    ///
    /// They are memory of this machine that may be read, and written to if this is a write.
    pub(crate) unsafe fn copy(self, phys: u64) {
        let writes = self.direction == Direction::Write;
        // SAFETY: By the invariant and the requirements of this function.
        unsafe { kfi_bindings::kfi_helper_copy(phys, self.buf, self.len, writes) };
    }
}

/// How many bytes an atomic operation goes to; their address is a multiple of that.
pub(crate) const WORD: usize = size_of::<u64>();

/// An atomic operation on eight bytes of a peer, in the peer's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// They become this.
    Write(u64),
    /// This is added to them.
    Add(u64),
    /// They become `new`, if they are as expected.
    CompareSwap {
        /// The value that they must have.
        expected: u64,
        /// The value that they get.
        new: u64,
    },
}

impl AtomicOp {
    /// Returns whether the operation modifies eight bytes that were `before`. Any context.
    pub const fn modifies(self, before: u64) -> bool {
        match self {
            Self::Write(_) => true,
            Self::Add(by) => by != 0,
            Self::CompareSwap { expected, .. } => before == expected,
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_transfer)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_most_at_the_end() {
        let (part, rest) = PeerBuffer::write_slice(b"abc").split_at(2);
        assert_eq!((part.len(), rest.len()), (2, 1));
        assert_eq!(rest.needs(), Access::REMOTE_WRITE);
        let (part, rest) = rest.split_at(5);
        assert_eq!((part.len(), rest.len()), (1, 0));
        assert!(rest.is_empty());
    }
}

#[kernel::macros::kunit_tests(kfabric_extent)]
mod tests_of_extent {
    use super::*;
    use crate::region::{
        lease::Lease,
        limits::MrLimits,
        request::{
            Arguments,
            AuthKey, //
        },
        segment_list::Source, //
    };

    const LIMITS: MrLimits = MrLimits {
        regions: 1,
        segments: 8,
        pages: 64,
        bytes: 1 << 20,
        gaps: true,
        leases: true,
        ..MrLimits::NONE
    };
    const ARGUMENTS: Arguments<'static> = Arguments {
        access: Access::REMOTE_READ.bits() | Access::REMOTE_WRITE.bits(),
        offset: 0,
        requested_key: 0,
        flags: 0,
        auth_key: AuthKey::None,
        together: false,
    };

    fn kvec(memory: &mut [u8]) -> kfi_bindings::kvec {
        kfi_bindings::kvec {
            iov_base: memory.as_mut_ptr().cast(),
            iov_len: memory.len(),
        }
    }

    /// Makes an extent, and the lease of its memory.
    fn extent(
        list: &[kfi_bindings::kvec],
        arguments: Arguments<'_>,
    ) -> Result<(CpuMemory, Option<Lease>)> {
        let request = MrRequest::parse(Source::kvecs(list), arguments, &LIMITS)?;
        Ok((CpuMemory::new(&request)?, request.take_lease()))
    }

    fn write(extent: &CpuMemory, at: u64, bytes: &[u8]) -> Result<(), Errno> {
        let copied = extent.copy(at, PeerBuffer::write_slice(bytes));
        copied.map_err(|e| e.errno())
    }

    #[test]
    fn segments_follow_each_other() -> Result {
        let mut memory = KVVec::from_elem(0u8, 3 * PAGE_SIZE, GFP_KERNEL)?;
        let (one, two) = memory.as_mut_slice().split_at_mut(PAGE_SIZE + 7);
        let list = [
            kvec(two.get_mut(100..103).ok_or(EINVAL)?),
            kvec(one.get_mut(PAGE_SIZE - 2..PAGE_SIZE + 2).ok_or(EINVAL)?),
            kvec(two.get_mut(0..1).ok_or(EINVAL)?),
        ];
        let (extent, _lease) = extent(&list, ARGUMENTS)?;
        assert_eq!(extent.bytes(), 8);
        assert!(extent.starts().eq([0, 3, 7]));
        assert_eq!(write(&extent, 0, b"abcdefgh"), Ok(()));
        assert_eq!(write(&extent, 3, b"D"), Ok(()));
        assert_eq!(write(&extent, 8, b""), Ok(()));
        assert_eq!(write(&extent, 7, b"xx"), Err(Errno::EINVAL));
        assert_eq!(write(&extent, 9, b""), Err(Errno::EINVAL));
        assert_eq!(write(&extent, u64::MAX, b"xx"), Err(Errno::EINVAL));
        let mut back = [0; 6];
        let copied = extent.copy(1, PeerBuffer::read_slice(&mut back));
        copied.map_err(Error::from)?;
        assert_eq!(&back, b"bcDefg");
        assert_eq!(two.get(99..104), Some(b"\0abc\0".as_slice()));
        assert_eq!(
            one.get(PAGE_SIZE - 3..PAGE_SIZE + 3),
            Some(b"\0Defg\0".as_slice())
        );
        assert_eq!(two.get(0..2), Some(b"h\0".as_slice()));
        Ok(())
    }

    #[test]
    fn rights_are_those_of_the_request() -> Result {
        let mut memory = KVec::from_elem(7u8, 10, GFP_KERNEL)?;
        let list = [kvec(&mut memory)];
        for (right, writes) in [(Access::REMOTE_READ, false), (Access::REMOTE_WRITE, true)] {
            let arguments = Arguments {
                access: right.bits(),
                ..ARGUMENTS
            };
            let (extent, _lease) = extent(&list, arguments)?;
            let mut byte = [0];
            let read = extent.copy(0, PeerBuffer::read_slice(&mut byte));
            let refused = Err(Errno::EACCES);
            let only = |allowed| if allowed { Ok(()) } else { refused };
            assert_eq!(read.map_err(|e| e.errno()), only(!writes));
            assert_eq!(write(&extent, 0, &[8]), only(writes));
        }
        Ok(())
    }

    #[test]
    fn adjacent_memory_is_one_run() -> Result {
        let mut memory = KVec::from_elem(0u8, 200, GFP_KERNEL)?;
        let (one, two) = memory.as_mut_slice().split_at_mut(100);
        let (joined, _) = extent(&[kvec(one), kvec(two)], ARGUMENTS)?;
        assert_eq!((joined.bytes(), joined.rest.len()), (200, 0));
        let (one, two) = memory.as_mut_slice().split_at_mut(100);
        let (split, _) = extent(&[kvec(two), kvec(one)], ARGUMENTS)?;
        assert_eq!((split.bytes(), split.rest.len()), (200, 1));
        Ok(())
    }

    #[test]
    fn nothing_is_copied_after_the_end() -> Result {
        let mut memory = KVec::from_elem(7u8, 10, GFP_KERNEL)?;
        let (extent, lease) = extent(&[kvec(&mut memory)], ARGUMENTS)?;
        assert_eq!(write(&extent, 0, b"a"), Ok(()));
        drop(lease);
        assert_eq!(write(&extent, 0, b"b"), Err(Errno::EACCES));
        assert_eq!(memory.first(), Some(&b'a'));
        Ok(())
    }

    #[test]
    fn who_keeps_memory_says_so_before() -> Result {
        let mut memory = KVec::from_elem(7u8, 10, GFP_KERNEL)?;
        let list = [kvec(&mut memory)];
        let limits = MrLimits {
            leases: false,
            ..LIMITS
        };
        let request = MrRequest::parse(Source::kvecs(&list), ARGUMENTS, &limits)?;
        let refused = CpuMemory::new(&request)
            .err()
            .map(|refusal| refusal.errno());
        assert_eq!(refused, Some(Errno::EINVAL));
        assert!(request.take_lease().is_none());
        Ok(())
    }

    #[test]
    fn a_request_that_fails_leaves_nothing() -> Result {
        let mut memory = KVec::from_elem(7u8, 10, GFP_KERNEL)?;
        let list = [kvec(&mut memory)];
        let request = MrRequest::parse(Source::kvecs(&list), ARGUMENTS, &LIMITS)?;
        let (one, two) = (CpuMemory::new(&request)?, CpuMemory::new(&request)?);
        assert_eq!(write(&one, 0, b"a"), Ok(()));
        drop(request);
        assert_eq!(write(&one, 0, b"b"), Err(Errno::EACCES));
        assert_eq!(write(&two, 0, b"b"), Err(Errno::EACCES));
        Ok(())
    }
}
