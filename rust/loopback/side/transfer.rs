// SPDX-License-Identifier: GPL-2.0

//! Doing one transfer: copying its bytes, and telling how it ended.

use super::Side;
use crate::peer::{
    Initiator,
    Target, //
};
use kfabric::{
    provider::{
        kept::Kept,
        ticket::{
            Failed,
            Received,
            Ticket, //
        }, //
    },
    Access,
    AtomicOp,
    Errno,
    Op,
    Refusal,
    RemotePiece, //
};

impl Side {
    /// Does one transfer. May sleep.
    pub(super) fn transfer(
        &self,
        peer: &Side,
        sending: Kept,
        receive: Option<Kept>,
    ) -> Result<(), Refusal> {
        let bytes = usize::try_from(sending.bytes()).unwrap_or(usize::MAX);
        match (*sending.op(), receive) {
            (Op::Send { data, invalidates }, Some(receive)) => {
                if let Some(key) = invalidates {
                    let done = peer.target().invalidate(&self.initiator(), key);
                    if done.is_err() {
                        return end(sending.into_ticket(), done);
                    }
                }
                let tail = Received {
                    data,
                    invalidated: invalidates,
                    ..Received::default()
                };
                send(sending, receive, tail)
            }
            (Op::Read, None) => {
                let done = self.access(peer, &sending);
                end(sending.into_ticket(), done)
            }
            (Op::Write { data }, receive) => {
                let done = self.access(peer, &sending);
                if let (Some(receive), Some(data)) = (receive, data) {
                    let ticket = receive.into_ticket();
                    match done {
                        Ok(()) => ticket.written(bytes, data),
                        Err(_) => drop(ticket),
                    }
                }
                end(sending.into_ticket(), done)
            }
            (Op::Atomic { what, .. }, None) => {
                let done = self.atomic(peer, &sending, what);
                end(sending.into_ticket(), done)
            }
            _ => Err(Errno::EIO.into()),
        }
    }

    /// Does something with eight bytes of the peer's memory; this side gets what they were.
    fn atomic(&self, peer: &Side, sending: &Kept, what: AtomicOp) -> Result<(), Refusal> {
        let (target, initiator) = (peer.target(), self.initiator());
        let before = target.atomic(&initiator, only(sending)?, what)?;
        sending.write_from(&before.to_ne_bytes());
        Ok(())
    }

    /// As where a peer's accesses go to.
    fn target(&self) -> Target<'_> {
        Target {
            home: &self.home,
            endpoint: Some(self.endpoint.clone()),
        }
    }

    /// As whose accesses they are.
    fn initiator(&self) -> Initiator<'_> {
        Initiator {
            home: Some(&self.home),
            endpoint: Some(self.endpoint.clone()),
            mapped: None,
        }
    }

    /// Copies to the peer's memory, or from it.
    fn access(&self, peer: &Side, sending: &Kept) -> Result<(), Refusal> {
        let (target, initiator) = (peer.target(), self.initiator());
        let pieces = sending.remote().pieces();
        let needs = match sending.op() {
            Op::Read => Access::REMOTE_READ,
            _ => Access::REMOTE_WRITE,
        };
        target.access_whole(&initiator, pieces, needs, sending.transfers())
    }
}

/// The piece of the peer's memory, which is one.
fn only(sending: &Kept) -> Result<RemotePiece, Refusal> {
    let piece = sending.remote().pieces().first();
    Ok(*piece.ok_or(Errno::EIO)?)
}

/// Ends an access.
fn end(ticket: Ticket, done: Result<(), Refusal>) -> Result<(), Refusal> {
    match done {
        Ok(()) => ticket.complete(),
        Err(refusal) => ticket.fail(refusal.errno().into()),
    }
    done
}

/// Copies a message to where the peer wants it, who gets what comes `with` it.
fn send(sending: Kept, receive: Kept, with: Received) -> Result<(), Refusal> {
    let bytes = sending.bytes();
    let room = receive.bytes();
    if bytes > room {
        let excess = usize::try_from(bytes - room).unwrap_or(usize::MAX);
        let failed = Failed {
            excess,
            ..Errno::ETRUNC.into()
        };
        receive.into_ticket().fail(failed);
        sending.into_ticket().fail(Errno::EREMOTEIO.into());
        let refusal = Refusal::new(Errno::ETRUNC, c"a message longer than the buffer for it");
        return Err(refusal.value(bytes));
    }
    sending.copy_to(&receive);
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    receive.into_ticket().received(Received { len, ..with });
    sending.into_ticket().complete();
    Ok(())
}
