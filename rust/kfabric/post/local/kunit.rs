// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the memory at this side of a transfer.

#[kernel::macros::kunit_tests(kfabric_post_local)]
mod tests {
    use super::super::*;
    use crate::region::access::Access;
    use core::ptr;
    use kfi_bindings::kvec;

    const SEND: Op = Op::Send {
        data: None,
        invalidates: None,
    };

    const RULES: LocalRules = LocalRules {
        by_region: true,
        mapped: MappedAs::Linear,
        peer_to_peer: false,
        segments: 4,
        pieces: 4,
        bytes: 1 << 20,
    };

    fn found(
        buffers: &Buffers<'_>,
        op: &Op,
        rules: &LocalRules,
        find: impl Fn(usize) -> Result<DescMr, Refusal>,
    ) -> Result<LocalPieces, Refusal> {
        let mut local = LocalPieces::none();
        local.find(buffers, op, rules, find)?;
        Ok(local)
    }

    fn find(memory: &[u8], desc: usize, op: Op, region: DescMr) -> Result<LocalPieces, Refusal> {
        let kvec = kvec {
            iov_base: memory.as_ptr().cast_mut().cast(),
            iov_len: memory.len(),
        };
        let desc = ptr::without_provenance_mut(desc);
        let buffers = Buffers::one(&kvec, &desc)?;
        found(&buffers, &op, &RULES, |_| Ok(region))
    }

    fn region(memory: &[u8], access: Access) -> DescMr {
        DescMr {
            start: Some(widen(memory.as_ptr().addr())),
            base: 0x1000,
            len: widen(memory.len()),
            access,
            whole: true,
        }
    }

    #[test]
    fn parts_of_pieces() {
        let memory = |phys, len| LocalPiece::Memory { phys, len };
        let mut all = LocalPieces::none();
        for (phys, len) in [(100, 10), (200, 20), (300, 30)] {
            assert!(all.push(memory(phys, len), &RULES).is_ok());
            all.bytes += len;
        }
        let is = |at, len, pieces: &[LocalPiece]| {
            let part = all.part(at, len);
            let bytes: u64 = pieces.iter().map(LocalPiece::bytes).sum();
            part.pieces() == pieces && part.bytes() == bytes
        };
        assert!(is(0, 60, all.pieces()));
        assert!(is(0, 10, &[memory(100, 10)]));
        assert!(is(10, 20, &[memory(200, 20)]));
        assert!(is(9, 2, &[memory(109, 1), memory(200, 1)]));
        assert!(is(
            5,
            26,
            &[memory(105, 5), memory(200, 20), memory(300, 1)]
        ));
        assert!(is(31, 1, &[memory(301, 1)]));
        assert!(is(59, 5, &[memory(329, 1)]));
        assert!(is(60, 5, &[]) && is(5, 0, &[]));
    }

    #[test]
    fn a_part_of_a_region_goes_by_it() -> Result {
        let memory = KVec::from_elem(0_u8, 4096, GFP_KERNEL)?;
        let region = region(&memory, Access::SEND);
        let part = memory.get(100..300).ok_or(EINVAL)?;
        let local = find(part, 7, SEND, region)?;
        let piece = LocalPiece::Region {
            desc: 7,
            address: 0x1000 + 100,
            len: 200,
        };
        assert_eq!((local.pieces(), local.bytes()), (&[piece][..], 200));
        Ok(())
    }

    #[test]
    fn not_beyond_the_region() -> Result {
        let memory = KVec::from_elem(0_u8, 4096, GFP_KERNEL)?;
        let half = memory.get(..2048).ok_or(EINVAL)?;
        let region = region(half, Access::SEND | Access::RECV);
        for range in [0..2049, 2047..2049, 2048..2049] {
            let part = memory.get(range).ok_or(EINVAL)?;
            let found = find(part, 7, Op::Receive, region).map(|local| local.bytes());
            assert_eq!(found.map_err(|no| no.errno()), Err(Errno::EINVAL));
        }
        assert!(find(half, 7, Op::Receive, region).is_ok());
        Ok(())
    }

    #[test]
    fn written_only_with_the_right() -> Result {
        let memory = KVec::from_elem(0_u8, 64, GFP_KERNEL)?;
        for access in [Access::SEND, Access::WRITE, Access::REMOTE_READ] {
            let region = region(&memory, access);
            let found = find(&memory, 7, Op::Receive, region).map(|local| local.bytes());
            assert_eq!(found.map_err(|no| no.errno()), Err(Errno::EACCES));
            assert!(find(&memory, 7, SEND, region).is_ok());
        }
        Ok(())
    }

    #[test]
    fn other_memory_is_found() -> Result {
        let memory = KVec::from_elem(0_u8, 64, GFP_KERNEL)?;
        let local = find(&memory, 0, Op::Receive, region(&memory, Access::RECV))?;
        assert!(matches!(
            local.pieces(),
            [LocalPiece::Memory { len: 64, .. }]
        ));
        // A region whose kernel address is unknown.
        let unknown = DescMr {
            start: None,
            ..region(&memory, Access::RECV)
        };
        let local = find(&memory, 7, Op::Receive, unknown)?;
        assert!(matches!(
            local.pieces(),
            [LocalPiece::Memory { len: 64, .. }]
        ));
        Ok(())
    }

    #[test]
    fn limits() -> Result {
        let memory = KVec::from_elem(0_u8, 5 * 256, GFP_KERNEL)?;
        let mut list = KVec::new();
        for part in memory.chunks(256) {
            let iov_base = part.as_ptr().cast_mut().cast();
            list.push(
                kvec {
                    iov_base,
                    iov_len: 128,
                },
                GFP_KERNEL,
            )?;
        }
        let none = |_| Err(Errno::EINVAL.into());
        let find = |count, rules: &LocalRules| {
            // SAFETY: The list has five kvecs.
            let buffers = unsafe { Buffers::list(KVEC, list.as_ptr().cast(), ptr::null(), count) }?;
            found(&buffers, &Op::Receive, rules, none).map(|local| local.pieces().len())
        };
        let errno = |found: Result<usize, Refusal>| found.map_err(|no| no.errno());
        assert_eq!(errno(find(4, &RULES)), Ok(4));
        assert_eq!(errno(find(5, &RULES)), Err(Errno::EINVAL));
        let three = LocalRules { pieces: 3, ..RULES };
        assert_eq!(errno(find(4, &three)), Err(Errno::E2BIG));
        let short = LocalRules {
            bytes: 511,
            ..RULES
        };
        assert_eq!(errno(find(4, &short)), Err(Errno::EMSGSIZE));
        assert_eq!(errno(find(0, &RULES)), Ok(0));
        Ok(())
    }
}
