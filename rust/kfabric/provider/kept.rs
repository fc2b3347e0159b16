// SPDX-License-Identifier: GPL-2.0

//! Transfers that a software provider keeps, with their local memory.

mod kunit;

use super::{
    msg_ep::{
        LocalMemory,
        Post, //
    },
    ticket::Ticket, //
};
use crate::{
    post::{
        injected::InjectCopy,
        local::LocalPieces,
        op::Op,
        remote::RemoteMemory, //
    },
    region::cpu_memory::PeerBuffer,
    support::num::widen, //
};

/// An accepted transfer that has not ended.
///
/// # Invariants
///
/// - The consumer leaves lent memory alone until `ticket` ends. It is writable if `op` writes it.
/// - No piece of lent memory refers to a region.
pub struct Kept {
    op: Op,
    memory: Memory,
    remote: RemoteMemory,
    ticket: Ticket,
}

/// The local memory of a kept transfer.
#[expect(
    clippy::large_enum_variant,
    reason = "a box needs an allocation, which may fail, in any context"
)]
enum Memory {
    /// The consumer's memory.
    Lent(LocalPieces),
    /// A copy of the bytes. The consumer may reuse its memory.
    Injected(InjectCopy),
}

impl<'a> Post<'a> {
    /// Accepts a transfer that the processor executes. Returns the post if a piece of its memory refers to a region, which
    /// the rules of a software provider exclude. Any context.
    pub fn keep(self) -> Result<Kept, Self> {
        let memory = match self.task().local() {
            LocalMemory::Lent(local) if local.has_regions() => return Err(self),
            LocalMemory::Lent(local) => Memory::Lent(*local),
            LocalMemory::Injected(bytes) => Memory::Injected(InjectCopy::of(bytes)),
        };
        let (task, ticket) = self.into_parts();
        // INVARIANT: Lent memory has no regions. The core makes sure that the ticket is that of the transfer.
        Ok(Kept {
            op: task.op(),
            memory,
            remote: *task.remote(),
            ticket,
        })
    }
}

impl Kept {
    /// Returns the operation.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Returns the peer's memory.
    pub fn remote(&self) -> &RemoteMemory {
        &self.remote
    }

    /// Returns the ticket.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Returns the length of the local memory in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.memory {
            Memory::Lent(local) => local.bytes(),
            Memory::Injected(injected) => widen(injected.bytes().len()),
        }
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
        match (&self.memory, to.written()) {
            (Memory::Injected(injected), _) => to.write_from(injected.bytes()),
            // SAFETY: Neither ticket has ended, so the memory of both is valid. `written` checks that `to` is writable.
            (Memory::Lent(local), Some(to)) => unsafe { local.copy_to(to) },
            (Memory::Lent(_), None) => (),
        }
    }

    /// Returns the memory if the operation writes it.
    fn written(&self) -> Option<&LocalPieces> {
        match &self.memory {
            Memory::Lent(local) if self.op.writes_local() => Some(local),
            _ => None,
        }
    }

    /// Returns the pieces of the memory, for copies to or from a peer's region. Any context.
    pub fn transfers(&self) -> impl Iterator<Item = PeerBuffer<'_>> + '_ {
        let writes = self.op.writes_local();
        let (lent, injected) = match &self.memory {
            Memory::Lent(local) => (Some(local), None),
            Memory::Injected(injected) => (None, Some(injected.bytes())),
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
