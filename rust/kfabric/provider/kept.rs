// SPDX-License-Identifier: GPL-2.0

//! A transfer that a provider in software keeps, with the memory at this side.

use super::{
    msg_ep::Post,
    ticket::Ticket, //
};
use crate::{
    post::{
        flags::PostFlags,
        local::Local,
        op::Op,
        remote::RemoteMemory, //
    },
    region::transfer::Transfer, //
};

/// A transfer that was accepted and hasn't ended: as long as that its memory is there, and may be read,
/// or be written to if that is what it does.
///
/// # Invariants
///
/// The memory is that of the transfer whose ticket this is, and none of its pieces goes by a region.
pub struct Kept {
    op: Op,
    flags: PostFlags,
    local: Local,
    remote: RemoteMemory,
    ticket: Ticket,
}

impl<'a> Post<'a> {
    /// Accepts it, to be done by the processor. Gives it back if a piece of its memory goes by a region's
    /// descriptor: the provider's rules say that none does. Any context.
    pub fn keep(self) -> Result<Kept, Self> {
        if self.task().local().has_regions() {
            return Err(self);
        }
        let (task, ticket) = self.into_parts();
        // INVARIANT: Just looked at; only the core puts a transfer and its ticket together.
        Ok(Kept {
            op: task.op(),
            flags: task.flags(),
            local: *task.local(),
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
        self.local.bytes()
    }

    /// It is done with its memory, and can be ended.
    pub fn into_ticket(self) -> Ticket {
        self.ticket
    }

    /// Copies as much of its memory as there is room for, and returns how much that is. Any context.
    pub fn read_to(&self, to: &mut [u8]) -> usize {
        let mut left = to;
        let mut done = 0;
        // SAFETY: By the invariant, the ticket has not ended, so the memory is there.
        for part in unsafe { self.local.parts() } {
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
        for part in unsafe { self.local.parts() } {
            let (now, rest) = left.split_at(part.len().min(left.len()));
            // SAFETY: There are so many bytes, which may be written, as was just looked at.
            unsafe { part.write(now) };
            left = rest;
        }
    }

    /// Copies its memory to that of another transfer, which is at least as long. Any context.
    pub fn copy_to(&self, to: &Self) {
        if to.op.writes_local() {
            // SAFETY: By the invariant, neither ticket has ended, so the memory of both is there; the
            // other one's may be written, as was just looked at.
            unsafe { self.local.copy_to(&to.local) };
        }
    }

    /// Its memory piece by piece, to be copied into a peer's region, or out of it. Any context.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer<'_>> + '_ {
        let writes = self.op.writes_local();
        // SAFETY: By the invariant, the ticket has not ended, so the memory is there, and `Transfer`
        // can't be kept longer than the borrow.
        let parts = unsafe { self.local.parts() };
        parts.map(move |part| {
            // SAFETY: So many bytes are there as long as `self` is borrowed, and may be written to if the
            // transfer does that.
            unsafe {
                match writes {
                    true => Transfer::read(part.as_ptr(), part.len()),
                    false => Transfer::write(part.as_ptr(), part.len()),
                }
            }
        })
    }
}
