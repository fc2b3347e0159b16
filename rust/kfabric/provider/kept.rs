// SPDX-License-Identifier: GPL-2.0

//! A transfer that a provider in software keeps, with the memory at this side.

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
    region::transfer::PeerBuffer,
    support::num::widen, //
};

/// A transfer that was accepted and has not ended. Until it ends, its memory is there and may be read, or
/// written to if the operation does that.
///
/// # Invariants
///
/// Lent memory is memory that the consumer leaves alone until `ticket` ends, and may be written to if `op`
/// does that. None of its pieces goes by a region.
pub struct Kept {
    op: Op,
    memory: Memory,
    remote: RemoteMemory,
    ticket: Ticket,
}

/// The memory at this side of a kept transfer.
#[expect(
    clippy::large_enum_variant,
    reason = "a box needs an allocation, which may fail, in any context"
)]
enum Memory {
    /// The consumer's memory.
    Lent(LocalPieces),
    /// A copy of the bytes: the consumer's memory may be gone.
    Injected(InjectCopy),
}

impl<'a> Post<'a> {
    /// Accepts it, to be done by the processor. Gives it back if a piece of its memory goes by a region's
    /// descriptor: the provider's rules say that none does. Any context.
    pub fn keep(self) -> Result<Kept, Self> {
        let memory = match self.task().local() {
            LocalMemory::Lent(local) if local.has_regions() => return Err(self),
            LocalMemory::Lent(local) => Memory::Lent(*local),
            LocalMemory::Injected(bytes) => Memory::Injected(InjectCopy::of(bytes)),
        };
        let (task, ticket) = self.into_parts();
        // INVARIANT: Lent memory has no regions, as was just checked. Only the core puts a transfer and its
        // ticket together.
        Ok(Kept {
            op: task.op(),
            memory,
            remote: *task.remote(),
            ticket,
        })
    }
}

impl Kept {
    /// What it does.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// The peer's memory.
    pub fn remote(&self) -> &RemoteMemory {
        &self.remote
    }

    /// To whom its end is told, and whose it is.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// How many bytes the memory has.
    pub fn bytes(&self) -> u64 {
        match &self.memory {
            Memory::Lent(local) => local.bytes(),
            Memory::Injected(injected) => widen(injected.bytes().len()),
        }
    }

    /// It is done with its memory, and can be ended.
    pub fn into_ticket(self) -> Ticket {
        self.ticket
    }

    /// Copies bytes to its memory, as much as there is room for. Others may be reading it. Any context.
    pub fn write_from(&self, from: &[u8]) {
        let Some(local) = self.written() else {
            return;
        };
        let mut left = from;
        // SAFETY: By the invariant, the ticket has not ended, so the memory is there.
        for part in unsafe { local.parts() } {
            let (now, rest) = left.split_at(part.len().min(left.len()));
            // SAFETY: There are so many bytes, which may be written, as was just looked at.
            unsafe { part.write(now) };
            left = rest;
        }
    }

    /// Copies its memory to that of another transfer, which is at least as long. Any context.
    pub fn copy_to(&self, to: &Self) {
        match (&self.memory, to.written()) {
            (Memory::Injected(injected), _) => to.write_from(injected.bytes()),
            // SAFETY: By the invariant, neither ticket has ended, so the memory of both is there; the
            // other one's may be written, as was just looked at.
            (Memory::Lent(local), Some(to)) => unsafe { local.copy_to(to) },
            (Memory::Lent(_), None) => (),
        }
    }

    /// Returns the memory if it may be written to.
    fn written(&self) -> Option<&LocalPieces> {
        match &self.memory {
            Memory::Lent(local) if self.op.writes_local() => Some(local),
            _ => None,
        }
    }

    /// Its memory piece by piece, to be copied into a peer's region, or out of it. Any context.
    pub fn transfers(&self) -> impl Iterator<Item = PeerBuffer<'_>> + '_ {
        let writes = self.op.writes_local();
        let (lent, injected) = match &self.memory {
            Memory::Lent(local) => (Some(local), None),
            Memory::Injected(injected) => (None, Some(injected.bytes())),
        };
        // SAFETY: By the invariant, the ticket has not ended, so the memory is there, and `PeerBuffer`
        // can't be kept longer than the borrow.
        let parts = lent.map(|local| unsafe { local.parts() });
        let lent = parts.into_iter().flatten().map(move |part| {
            // SAFETY: So many bytes are there as long as `self` is borrowed, and may be written to if the
            // transfer does that.
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
