// SPDX-License-Identifier: GPL-2.0

//! Transfers that a software provider keeps, with their local memory.

use crate::{
    post::{
        local::LocalPieces,
        LocalMemory,
        Op,
        RemoteMemory,
        TransferRequest, //
    },
    provider::{
        msg_ep::Post,
        ticket::Ticket, //
    },
    region::cpu_memory::PeerBuffer, //
};

/// An accepted transfer that has not ended.
///
/// # Invariants
///
/// - The consumer leaves lent memory alone until `ticket` ends. It is writable if the operation writes it.
/// - No piece of lent memory refers to a region.
pub struct Kept {
    transfer: TransferRequest,
    ticket: Ticket,
}

impl Post<'_> {
    /// Accepts a transfer that the processor executes. Returns the post if a piece of its memory refers to a region, which
    /// the rules of a software provider exclude. Any context.
    pub fn keep(self) -> Result<Kept, Self> {
        let Self { transfer, ticket } = self;
        match &transfer.local {
            LocalMemory::Lent(local) if local.has_regions() => Err(Self { transfer, ticket }),
            // INVARIANT: Lent memory has no regions. The ticket is that of the transfer by the invariant of `Post`.
            local => Ok(Kept {
                transfer: TransferRequest {
                    op: transfer.op,
                    local: *local,
                    remote: transfer.remote,
                    flags: transfer.flags,
                },
                ticket,
            }),
        }
    }
}

impl Kept {
    /// Returns the operation.
    pub fn op(&self) -> &Op {
        &self.transfer.op
    }

    /// Returns the peer's memory.
    pub fn remote(&self) -> &RemoteMemory {
        &self.transfer.remote
    }

    /// Returns the ticket.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Returns the length of the local memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.transfer.local.bytes()
    }

    /// Ends the use of the memory, and returns the ticket.
    pub fn into_ticket(self) -> Ticket {
        self.ticket
    }

    /// Copies bytes to the memory, up to its length. Other threads may read it at the same time. Any context.
    pub fn write_from(&self, from: &[u8]) {
        let Some(local) = self.written() else {
            return;
        };
        let mut left = from;
        // SAFETY: The ticket has not ended, so the consumer leaves the memory alone.
        for part in unsafe { local.parts() } {
            let (now, rest) = left.split_at(part.len().min(left.len()));
            // SAFETY: `now` is at most as long as `part`, and `written` checks that the memory is writable.
            unsafe { part.write(now) };
            left = rest;
        }
    }

    /// Copies the memory to that of another transfer, which is at least as long. Any context.
    pub fn copy_to(&self, to: &Self) {
        match (&self.transfer.local, to.written()) {
            (LocalMemory::Injected(injected), _) => to.write_from(injected.bytes()),
            // SAFETY: Neither ticket has ended, so the memory of both is valid. `written` checks that `to` is writable.
            (LocalMemory::Lent(local), Some(to)) => unsafe { local.copy_to(to) },
            (LocalMemory::Lent(_), None) => (),
        }
    }

    /// Returns the memory if the operation writes it.
    fn written(&self) -> Option<&LocalPieces> {
        match &self.transfer.local {
            LocalMemory::Lent(local) if self.transfer.op.writes_local() => Some(local),
            _ => None,
        }
    }

    /// Returns the pieces of the memory, for copies to or from a peer's region. Any context.
    pub fn transfers(&self) -> impl Iterator<Item = PeerBuffer<'_>> + '_ {
        let writes = self.transfer.op.writes_local();
        let (lent, injected) = match &self.transfer.local {
            LocalMemory::Lent(local) => (Some(local), None),
            LocalMemory::Injected(injected) => (None, Some(injected.bytes())),
        };
        // SAFETY: The ticket has not ended, so the memory is valid while `self` is borrowed.
        let parts = lent.map(|local| unsafe { local.parts() });
        let lent = parts.into_iter().flatten().map(move |part| {
            // SAFETY: `part` is valid while `self` is borrowed, and writable if the operation writes it.
            unsafe {
                match writes {
                    true => PeerBuffer::read(part.as_ptr(), part.len()),
                    false => PeerBuffer::write(part.as_ptr(), part.len()),
                }
            }
        });
        injected
            .map(PeerBuffer::write_slice)
            .into_iter()
            .chain(lent)
    }
}

#[kernel::macros::kunit_tests(kfabric_kept)]
mod tests {
    use super::*;
    use crate::{
        post::{
            injected::InjectCopy,
            local::{
                Buffers,
                DescMr,
                LocalRules, //
            },
            PostFlags, //
        },
        prelude::*,
        provider::cq::{
            Context,
            CqEntry, //
        },
        region::extents::MappedAs, //
    };
    use core::ptr::null_mut;

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
    fn keep(op: Op, local: LocalMemory) -> Result<Kept> {
        let done = CqEntry {
            context: Context::NULL,
            flags: 0,
            len: 0,
            buf: Context::NULL,
            data: 0,
        };
        let transfer = TransferRequest {
            local,
            ..TransferRequest::new(op, PostFlags::default())
        };
        let ticket = Ticket::new(None, None, done, true);
        let transfer = &transfer;
        Post { transfer, ticket }.keep().map_err(|_| EINVAL)
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
        keep(SEND, LocalMemory::Injected(injected))
    }

    /// Copies a message to a receive of `to.len()` bytes.
    fn receive(message: &Kept, to: &mut KVec<u8>) -> Result {
        let mut local = LocalPieces::none();
        with_buffers((to.as_mut_ptr(), to.len()), |buffers| {
            local.find(buffers, &Op::Receive, &RULES, no_region)
        })?;
        let receive = keep(Op::Receive, LocalMemory::Lent(local))?;
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
