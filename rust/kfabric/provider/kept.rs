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
        flags::PostFlags,
        injected::Injected,
        local::Local,
        op::Op,
        remote::RemoteMemory, //
    },
    region::transfer::Transfer,
    support::num::widen, //
};

/// A transfer that was accepted and hasn't ended: as long as that its memory is there, and may be read,
/// or be written to if that is what it does.
///
/// # Invariants
///
/// `lent` is memory that the consumer leaves alone until `ticket` ends, and may be written to if `op`
/// does that. None of its pieces goes by a region. It is empty if there is `injected`.
pub struct Kept {
    op: Op,
    flags: PostFlags,
    lent: Local,
    /// The bytes, if the consumer's memory may be gone.
    injected: Option<Injected>,
    remote: RemoteMemory,
    ticket: Ticket,
}

impl<'a> Post<'a> {
    /// Accepts it, to be done by the processor. Gives it back if a piece of its memory goes by a region's
    /// descriptor: the provider's rules say that none does. Any context.
    pub fn keep(self) -> Result<Kept, Self> {
        let (lent, injected) = match self.task().local() {
            LocalMemory::Lent(local) if local.has_regions() => return Err(self),
            LocalMemory::Lent(local) => (*local, None),
            LocalMemory::Injected(bytes) => (Local::none(), Some(Injected::of(bytes))),
        };
        let (task, ticket) = self.into_parts();
        // INVARIANT: `lent` has no regions, as was just checked. Only the core puts a transfer and its
        // ticket together.
        Ok(Kept {
            op: task.op(),
            flags: task.flags(),
            lent,
            injected,
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

    /// How.
    pub fn flags(&self) -> PostFlags {
        self.flags
    }

    /// To whom its end is told, and whose it is.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// How many bytes the memory has.
    pub fn bytes(&self) -> u64 {
        match &self.injected {
            Some(injected) => widen(injected.bytes().len()),
            None => self.lent.bytes(),
        }
    }

    /// It is done with its memory, and can be ended.
    pub fn into_ticket(self) -> Ticket {
        self.ticket
    }

    /// Copies as much of its memory as there is room for, and returns how much that is. Any context.
    pub fn read_to(&self, to: &mut [u8]) -> usize {
        if let Some(injected) = &self.injected {
            let bytes = to.iter_mut().zip(injected.bytes());
            return bytes.map(|(to, from)| *to = *from).count();
        }
        let mut left = to;
        let mut done = 0;
        // SAFETY: By the invariant, the ticket has not ended, so the memory is there.
        for part in unsafe { self.lent.parts() } {
            let here = part.len().min(left.len());
            let (now, rest) = core::mem::take(&mut left).split_at_mut(here);
            // SAFETY: There are so many bytes, which may be read.
            unsafe { part.read(now) };
            left = rest;
            done += here;
        }
        done
    }

    /// Copies bytes to its memory, as much as there is room for. Others may be reading it. Any context.
    pub fn write_from(&self, from: &[u8]) {
        if !self.op.writes_local() {
            return;
        }
        let mut left = from;
        // SAFETY: By the invariant, the ticket has not ended, so the memory is there.
        for part in unsafe { self.lent.parts() } {
            let (now, rest) = left.split_at(part.len().min(left.len()));
            // SAFETY: There are so many bytes, which may be written, as was just looked at.
            unsafe { part.write(now) };
            left = rest;
        }
    }

    /// Copies its memory to that of another transfer, which is at least as long. Any context.
    pub fn copy_to(&self, to: &Self) {
        if let Some(injected) = &self.injected {
            to.write_from(injected.bytes());
        } else if to.op.writes_local() {
            // SAFETY: By the invariant, neither ticket has ended, so the memory of both is there; the
            // other one's may be written, as was just looked at.
            unsafe { self.lent.copy_to(&to.lent) };
        }
    }

    /// Its memory piece by piece, to be copied into a peer's region, or out of it. Any context.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer<'_>> + '_ {
        let writes = self.op.writes_local();
        let injected = self.injected.as_ref().map(Injected::bytes);
        // SAFETY: By the invariant, the ticket has not ended, so the memory is there, and `Transfer`
        // can't be kept longer than the borrow.
        let parts = unsafe { self.lent.parts() };
        let lent = parts.map(move |part| {
            // SAFETY: So many bytes are there as long as `self` is borrowed, and may be written to if the
            // transfer does that.
            unsafe {
                match writes {
                    true => Transfer::read(part.as_ptr(), part.len()),
                    false => Transfer::write(part.as_ptr(), part.len()),
                }
            }
        });
        injected.map(Transfer::write_slice).into_iter().chain(lent)
    }
}
