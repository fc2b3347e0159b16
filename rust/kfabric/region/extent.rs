// SPDX-License-Identifier: GPL-2.0

//! The memory of a region, for providers that reach it by the processor.

mod building;

use self::building::{Building, Run};
use crate::{
    region::{
        access::Access,
        lease::Tenant,
        request::MrRequest,
        source::Source,
        transfer::Transfer, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
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
/// The runs follow each other in the order of `at`, the first one at 0, and each ends where the
/// next one begins, or at `len`. Their physical addresses are memory that may be registered with
/// the rights of the request, and stays where it is while somebody is inside `tenant`.
pub struct Extent {
    // Most regions are one run, which needs no memory of its own.
    first: Run,
    rest: KVVec<Run>,
    len: u64,
    access: Access,
    tenant: Tenant,
}

impl Extent {
    /// Takes the memory of a request. `EFAULT` at memory that may not be registered, `EINVAL` at
    /// an address in a scatterlist that is none of this machine's memory. May sleep.
    pub fn new(request: &MrRequest<'_>) -> Result<Self, Refusal> {
        let mut building = Building::default();
        match request.source() {
            Source::Sgl(list) => building.add_list(list, request.memory())?,
            _ => {
                for piece in request.pieces() {
                    let piece = piece?;
                    // SAFETY: A page that is there.
                    let page = unsafe { kfi_bindings::kfi_helper_page_phys(piece.page.as_ptr()) };
                    building.add(page + widen(piece.offset), widen(piece.len))?;
                }
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

    /// Its length in bytes; not 0.
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// Where in its page the first byte is.
    pub fn page_offset(&self) -> u64 {
        self.first.phys % widen(PAGE_SIZE)
    }

    /// Where in the region each stretch of adjacent memory begins.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        (0..=self.rest.len()).filter_map(|index| self.run(index).map(|run| run.at))
    }

    fn run(&self, index: usize) -> Option<Run> {
        match index.checked_sub(1) {
            None => Some(self.first),
            Some(index) => self.rest.get(index).copied(),
        }
    }

    /// Would a copy of so many bytes be refused?
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
    pub fn copy(&self, at: u64, transfer: Transfer<'_>) -> Result<(), Refusal> {
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
            // SAFETY: By the invariant, so many bytes of the run are memory that may be registered
            // with a right that was just found to be the transfer's, and that stays meanwhile.
            unsafe { part.copy(run.phys + (at - run.at)) };
            (at, index, left) = (run_end, index + 1, rest);
        }
        Ok(())
    }
}

#[kernel::macros::kunit_tests(kfabric_extent)]
mod tests {
    use super::*;
    use crate::region::{
        lease::Lease,
        request::{
            Arguments,
            AuthKey,
            MrLimits, //
        }, //
    };

    const LIMITS: MrLimits = MrLimits {
        regions: 1,
        segments: 8,
        pages: 64,
        bytes: 1 << 20,
        holes: true,
        ..MrLimits::NONE
    };
    const ARGUMENTS: Arguments<'static> = Arguments {
        access: Access::REMOTE_READ.bits() | Access::REMOTE_WRITE.bits(),
        offset: 0,
        requested_key: 0,
        flags: 0,
        auth_key: AuthKey::None,
    };

    fn kvec(memory: &mut [u8]) -> kfi_bindings::kvec {
        kfi_bindings::kvec {
            iov_base: memory.as_mut_ptr().cast(),
            iov_len: memory.len(),
        }
    }

    /// An extent, and what it may be used as long as.
    fn extent(
        list: &[kfi_bindings::kvec],
        arguments: Arguments<'_>,
    ) -> Result<(Extent, Option<Lease>)> {
        let request = MrRequest::parse(Source::kvecs(list), arguments, &LIMITS)?;
        Ok((Extent::new(&request)?, request.take_lease()))
    }

    fn write(extent: &Extent, at: u64, bytes: &[u8]) -> Result<(), Errno> {
        let copied = extent.copy(at, Transfer::write_slice(bytes));
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
        let copied = extent.copy(1, Transfer::read_slice(&mut back));
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
            let read = extent.copy(0, Transfer::read_slice(&mut byte));
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
    fn a_request_that_fails_leaves_nothing() -> Result {
        let mut memory = KVec::from_elem(7u8, 10, GFP_KERNEL)?;
        let list = [kvec(&mut memory)];
        let request = MrRequest::parse(Source::kvecs(&list), ARGUMENTS, &LIMITS)?;
        let (one, two) = (Extent::new(&request)?, Extent::new(&request)?);
        assert_eq!(write(&one, 0, b"a"), Ok(()));
        drop(request);
        assert_eq!(write(&one, 0, b"b"), Err(Errno::EACCES));
        assert_eq!(write(&two, 0, b"b"), Err(Errno::EACCES));
        Ok(())
    }
}
