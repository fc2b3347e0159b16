// SPDX-License-Identifier: GPL-2.0

//! Transfers of several work requests: one for each piece of the peer's memory, and those that
//! register the memory of a read if the device needs that.
//!
//! The device gets all of them or none. The transfer completes with the last one. A device executes
//! them in order, so the first failure is the one to report.
//!
//! Lock order: the lock of a transfer is a leaf. No transfer ends under it.

use super::{
    conn::Conn,
    done::{
        self,
        QueueKind, //
    },
    post::{
        begin,
        map,
        remote, //
    },
    read_sinks::Read,
    QpResources, //
};
use crate::refused;
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock,
    prelude::*,
    provider::{
        msg_ep::PostRefusal,
        ticket::{
            Failed,
            Ticket, //
        }, //
    },
    LocalMemory,
    LocalPiece,
    Op,
    TransferRequest, //
};
use rdma::{
    cm::{
        Chain,
        Endpoint, //
    },
    request::{
        CompletedRequest,
        CompletionHandler, //
    },
    wr::WorkRequest, //
};

/// A transfer of several parts.
#[pin_data]
struct Whole {
    #[pin]
    state: IrqLock<State>,
}

struct State {
    /// [`None`] before it is accepted, and when it has ended.
    ticket: Option<Ticket>,
    /// How many parts have not ended.
    left: usize,
    failed: Option<Failed>,
    /// The sinks that are registered for it.
    read: Read,
}

/// A transfer that has ended.
type Over = (Ticket, Option<Failed>, Read);

impl State {
    /// Takes the transfer, if it has not completed yet.
    fn over(&mut self) -> Option<Over> {
        let ticket = self.ticket.take()?;
        Some((ticket, self.failed, core::mem::take(&mut self.read)))
    }
}

/// Ends a transfer when its last part has.
struct Part {
    whole: Arc<Whole>,
    conn: Arc<Conn>,
}

impl Whole {
    /// Creates a transfer without parts, which is not accepted yet. Any context.
    fn new() -> Result<Arc<Self>, Refusal> {
        let state = State {
            ticket: None,
            left: 0,
            failed: None,
            read: Read::default(),
        };
        let whole = pin_init!(Self {
            state <- new_irq_lock!(state, c"kfi_verbs_whole"),
        });
        Arc::pin_init(whole, GFP_ATOMIC).map_err(|_| Errno::ENOMEM.into())
    }

    /// Adds a part. Any context.
    fn part(self: &Arc<Self>, conn: &Arc<Conn>) -> Part {
        self.state.with(|state| state.left += 1);
        Part {
            whole: self.clone(),
            conn: conn.clone(),
        }
    }

    /// Marks the transfer as accepted.
    fn accept(&self, ticket: Ticket) {
        self.state.with(|state| state.ticket = Some(ticket));
    }

    /// Takes the ticket of a transfer that is refused after all. Returns [`None`] if it has
    /// completed.
    fn take_back(&self) -> Option<Ticket> {
        self.state.with(|state| state.ticket.take())
    }

    /// Ends the sinks of a transfer that was not accepted. All its parts have ended. Any context.
    fn undo(&self) {
        let read = self.state.with(|state| core::mem::take(&mut state.read));
        read.end(None);
    }

    /// Calls `f` with the sinks. No part has ended. Any context.
    fn with_read<R>(&self, f: impl FnOnce(&mut Read) -> R) -> R {
        self.state.with(|state| f(&mut state.read))
    }

    /// Handles the end of a part.
    fn ended(&self, how: Result<(), Failed>) {
        let over = self.state.with(|state| {
            state.left = state.left.saturating_sub(1);
            if let Err(failed) = how {
                let keeps = failed.errno == Errno::ENOTRECOVERABLE;
                // That the device keeps the memory matters more than why.
                if keeps || state.failed.is_none() {
                    state.failed = Some(failed);
                }
            }
            match state.left {
                0 => state.over(),
                _ => None,
            }
        });
        if let Some((ticket, failed, read)) = over {
            // Before it is told: its memory is the consumer's again then.
            read.end(Some((ticket, failed)));
        }
    }
}

impl<K: Send + 'static> CompletionHandler<WorkRequest<K>> for Part {
    fn ended(self, ended: CompletedRequest<'_, WorkRequest<K>>) {
        // Unmapped before anybody looks at it.
        drop(ended.request);
        let how = ended.result.map(|_| ());
        let how = how.map_err(|error| done::note(&self.conn, QueueKind::Sends, error));
        self.whole.ended(how);
    }
}

impl QpResources {
    /// Posts a transfer with several pieces of the peer's memory. Any context.
    pub(super) fn split(
        &self,
        endpoint: &Arc<Endpoint>,
        transfer: &TransferRequest,
        ticket: Ticket,
        conn: &Arc<Conn>,
    ) -> Result<(), PostRefusal> {
        let whole = match Whole::new() {
            Ok(whole) => whole,
            Err(why) => return Err(PostRefusal::new(why, ticket)),
        };
        let chain = match self.chain(endpoint, transfer, &whole, conn) {
            Ok(chain) => chain,
            Err(why) => {
                whole.undo();
                // A request that waits for space waits for those that wait for more.
                if why.errno() == Errno::EAGAIN {
                    conn.go();
                }
                return Err(PostRefusal::new(why, ticket));
            }
        };
        whole.accept(ticket);
        match conn.give_all(endpoint, chain, transfer.flags.more) {
            Ok(()) => Ok(()),
            Err((error, chain)) => {
                let ticket = whole.take_back();
                drop(chain);
                whole.undo();
                let why = refused::not_posted(error);
                ticket.map_or(Ok(()), |ticket| Err(PostRefusal::new(why, ticket)))
            }
        }
    }

    /// Creates the requests of a transfer.
    fn chain(
        &self,
        endpoint: &Arc<Endpoint>,
        transfer: &TransferRequest,
        whole: &Arc<Whole>,
        conn: &Arc<Conn>,
    ) -> Result<Chain, Refusal> {
        let parts = transfer.remote.pieces().len();
        if parts > self.sends {
            let why = c"more pieces of the peer's memory than the queue has places";
            return Err(Refusal::new(Errno::E2BIG, why).value(widen(parts)));
        }
        let mut sinks = 0;
        transfer.each(|transfer| {
            sinks += self.sinks_of(transfer);
            Ok::<_, Refusal>(())
        })?;
        if parts + 2 * sinks > self.sends || !self.has_sinks(sinks) {
            let why = c"more pieces of memory to be registered than the queue has places for";
            return Err(Refusal::new(Errno::E2BIG, why).value(widen(sinks)));
        }
        let chain = endpoint.begin_chain();
        let mut chain = chain.map_err(refused::not_posted)?;
        transfer.each(|transfer| match self.sinks_of(transfer) {
            0 => {
                let part = whole.part(conn);
                let request = self.request(transfer, transfer.remote.pieces());
                let begun = begin(request, part, |request| chain.push(request));
                begun.map_err(|(why, _)| why)
            }
            _ => self.read_registered(transfer, &mut chain, whole, conn),
        })?;
        Ok(chain)
    }

    /// Returns the number of local pieces to register for a request. Any context.
    pub(super) fn sinks_of(&self, transfer: &TransferRequest) -> usize {
        let is_bare = |piece: &&LocalPiece| !matches!(piece, LocalPiece::Region { .. });
        match (&self.sinks, transfer.op, &transfer.local) {
            (Some(_), Op::Read, LocalMemory::Lent(local)) => {
                local.pieces().iter().filter(is_bare).count()
            }
            _ => 0,
        }
    }

    /// Checks whether `count` pieces of memory can be registered at once. Any context.
    fn has_sinks(&self, count: usize) -> bool {
        count == 0
            || self
                .sinks
                .as_ref()
                .is_some_and(|sinks| count <= sinks.count())
    }

    /// Puts a read on a chain, with the requests that register its memory. After an error, some of them may
    /// be on the chain. Any context.
    fn read_registered(
        &self,
        transfer: &TransferRequest,
        chain: &mut Chain,
        whole: &Arc<Whole>,
        conn: &Arc<Conn>,
    ) -> Result<(), Refusal> {
        let (Some(sinks), LocalMemory::Lent(local)) = (&self.sinks, &transfer.local) else {
            return Err(Errno::EINVAL.into());
        };
        let from = remote(transfer.remote.pieces())?;
        whole.with_read(Read::reserve)?;
        let sink = sinks.sink(&self.pd, map(&self.pd, local, true)?)?;
        let read = sink.read(chain, from, self.fences(transfer), || whole.part(conn));
        whole.with_read(|read| read.add(sinks, sink));
        read.map_err(refused::not_posted)
    }
}
