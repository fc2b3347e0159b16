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
            buffers::{
                Buffers,
                LocalRules, //
            },
            local::DescMr,
            op::PostFlags, //
        },
        region::memory::MappedAs,
        support::{
            errno::Errno,
            refusal::Refusal, //
        }, //
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

    /// Posts a transfer to a provider that keeps it, as the core does.
    fn keep(op: Op, local: LocalMemory<'_>, flags: PostFlags) -> Result<Kept> {
        let done = Completion {
            context: Context::NULL,
            flags: 0,
            len: 0,
            buf: Context::NULL,
            data: 0,
        };
        let remote = RemoteMemory::none();
        let task = Task::new(op, local, &remote, flags);
        let ticket = Ticket::new(None, None, done, true);
        Post::new(task, ticket).keep().map_err(|_| EINVAL)
    }

    /// Calls `f` with the buffers of a consumer that posts one transfer.
    fn with_buffers<R>(
        (start, len): (*const u8, usize),
        f: impl FnOnce(&Buffers<'_>) -> Result<R, Refusal>,
    ) -> Result<R> {
        let kvec = kvec {
            iov_base: start.cast_mut().cast(),
            iov_len: len,
        };
        let desc = null_mut();
        let buffers = Buffers::one(&kvec, &desc).and_then(|buffers| f(&buffers));
        buffers.map_err(|_| EFAULT)
    }

    fn no_region(_: usize) -> Result<DescMr, Refusal> {
        Err(Errno::EINVAL.into())
    }

    /// Posts a message of injected bytes.
    fn send(bytes: &[u8]) -> Result<Kept> {
        let injected = with_buffers((bytes.as_ptr(), bytes.len()), |buffers| {
            InjectCopy::copy(buffers, &SEND, &RULES, 64, no_region)
        })?;
        let local = LocalMemory::Injected(injected.bytes());
        keep(SEND, local, PostFlags::injected())
    }

    /// Copies a message to a receive of `to.len()` bytes.
    fn receive(message: &Kept, to: &mut KVec<u8>) -> Result {
        let mut local = LocalPieces::none();
        with_buffers((to.as_mut_ptr(), to.len()), |buffers| {
            local.find(buffers, &Op::Receive, &RULES, no_region)
        })?;
        let receive = keep(
            Op::Receive,
            LocalMemory::Lent(&local),
            PostFlags::default(0, 0),
        )?;
        message.copy_to(&receive);
        receive.into_ticket().complete();
        Ok(())
    }

    #[test]
    fn injected_bytes_outlive_the_consumers() -> Result {
        let mut bytes = KVec::from_elem(7_u8, 48, GFP_KERNEL)?;
        let kept = send(&bytes)?;
        bytes.fill(9);
        drop(bytes);
        assert_eq!(kept.bytes(), 48);
        let mut read = KVec::from_elem(0_u8, 64, GFP_KERNEL)?;
        receive(&kept, &mut read)?;
        assert!(read[..48].iter().all(|&byte| byte == 7));
        assert!(read[48..].iter().all(|&byte| byte == 0));
        let mut short = KVec::from_elem(0_u8, 16, GFP_KERNEL)?;
        receive(&kept, &mut short)?;
        assert!(short.iter().all(|&byte| byte == 7));
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
