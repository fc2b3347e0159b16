// SPDX-License-Identifier: GPL-2.0

//! Unit tests of kept transfers.

#[kernel::macros::kunit_tests(kfabric_kept)]
mod tests {
    use super::super::{
        super::{
            cq::{
                Completion,
                Context, //
            },
            msg_ep::Task, //
        },
        *, //
    };
    use crate::{
        post::{
            buffers::Buffers,
            limits::{
                LocalRules,
                MappedAs, //
            }, //
        },
        support::errno::Errno, //
    };
    use core::ptr::null_mut;
    use kernel::prelude::*;
    use kfi_bindings::kvec;

    const RULES: LocalRules = LocalRules {
        by_region: false,
        mapped: MappedAs::Physical,
        peer_to_peer: false,
        segments: 1,
        pieces: 1,
        bytes: 4096,
    };

    const SEND: Op = Op::Send {
        data: None,
        invalidates: None,
    };

    /// Posts a message to a provider that keeps it, as the core does. The consumer injects the bytes.
    fn post(bytes: &[u8]) -> Result<Kept> {
        let kvec = kvec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let desc = null_mut();
        let buffers = Buffers::one(&kvec, &desc).map_err(|_| EINVAL)?;
        let find = |_| Err(Errno::EINVAL.into());
        let injected = Injected::copy(&buffers, &SEND, &RULES, 64, find).map_err(|_| EFAULT)?;
        let done = Completion {
            context: Context::NULL,
            flags: 0,
            len: 0,
            buf: Context::NULL,
            data: 0,
        };
        let local = LocalMemory::Injected(injected.bytes());
        let remote = RemoteMemory::none();
        let task = Task::new(SEND, local, &remote, PostFlags::injected());
        let ticket = Ticket::new(None, None, done, true);
        Post::new(task, ticket).keep().map_err(|_| EINVAL)
    }

    #[test]
    fn injected_bytes_outlive_the_consumers() -> Result {
        let mut bytes = KVec::from_elem(7_u8, 48, GFP_KERNEL)?;
        let kept = post(&bytes)?;
        bytes.fill(9);
        drop(bytes);
        let mut read = [0; 64];
        assert_eq!((kept.bytes(), kept.read_to(&mut read)), (48, 48));
        assert!(read[..48].iter().all(|&byte| byte == 7));
        assert!(read[48..].iter().all(|&byte| byte == 0));
        assert_eq!(kept.read_to(&mut read[..16]), 16);
        let mut lens = [0; 2];
        let count = lens
            .iter_mut()
            .zip(kept.transfers())
            .map(|(to, from)| *to = from.len())
            .count();
        assert_eq!((count, lens), (1, [48, 0]));
        kept.into_ticket().complete();
        Ok(())
    }
}
