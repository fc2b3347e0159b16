// SPDX-License-Identifier: GPL-2.0

//! Unit tests of extents.

#[kernel::macros::kunit_tests(kfabric_extent)]
mod tests {
    use crate::region::{
        cpu_memory::*,
        lease::Lease,
        limits::{
            AuthKey,
            MrLimits, //
        },
        request::Arguments,
        source::Source, //
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
