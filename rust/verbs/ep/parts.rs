// SPDX-License-Identifier: GPL-2.0

//! Transfers that are several requests to the device: one for each piece of the peer's memory.
//!
//! They are given to the device in one go, or not at all, and the transfer ends when the last of them
//! has. A device does them one after the other, so the first that fails is the one to tell of.
//!
//! Lock order: the lock of a transfer is a leaf. No transfer ends under it.

use super::{
    conn::Conn,
    done::{
        self,
        Queue, //
    },
    post::{
        begin,
        Transmit, //
    },
    wires::Wires, //
};
use crate::refused;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock,
    num::widen,
    provider::{
        msg_ep::{
            Refused,
            Task, //
        },
        ticket::{
            Failed,
            Ticket, //
        }, //
    },
    Errno,
    Refusal, //
};
use rdma::{
    cm::{
        Chain,
        Endpoint, //
    },
    request::{
        Ended,
        Then, //
    }, //
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
}

/// Ends a transfer when its last part has.
struct Part {
    whole: Arc<Whole>,
    conn: Arc<Conn>,
}

impl Whole {
    /// One of so many parts, which isn't accepted yet. Any context.
    fn new(parts: usize) -> Result<Arc<Self>, Refusal> {
        let state = State {
            ticket: None,
            left: parts,
            failed: None,
        };
        let whole = pin_init!(Self {
            state <- new_irq_lock!(state, c"kfi_verbs_whole"),
        });
        Arc::pin_init(whole, GFP_ATOMIC).map_err(|_| Errno::ENOMEM.into())
    }

    /// It is accepted.
    fn accept(&self, ticket: Ticket) {
        self.state.with(|state| state.ticket = Some(ticket));
    }

    /// It isn't after all. [`None`] if it has ended already.
    fn take_back(&self) -> Option<Ticket> {
        self.state.with(|state| state.ticket.take())
    }

    /// A part has ended.
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
                0 => state.ticket.take().map(|ticket| (ticket, state.failed)),
                _ => None,
            }
        });
        match over {
            Some((ticket, Some(failed))) => ticket.fail(failed),
            Some((ticket, None)) => ticket.complete(),
            None => (),
        }
    }
}

impl Then<Transmit> for Part {
    fn ended(self, ended: Ended<'_, Transmit>) {
        // Unmapped before anybody looks at it.
        drop(ended.request);
        let how = ended.result.map(|_| ());
        let how = how.map_err(|error| done::note(&self.conn, Queue::Sends, error));
        self.whole.ended(how);
    }
}

impl Wires {
    /// Posts a transfer with several pieces of the peer's memory. Any context.
    pub(super) fn split(
        &self,
        endpoint: &Arc<Endpoint>,
        task: &Task<'_>,
        ticket: Ticket,
        conn: &Arc<Conn>,
    ) -> Result<(), Refused> {
        let parts = task.remote().pieces().len();
        let begun = Whole::new(parts).and_then(|whole| {
            self.chain(endpoint, task, &whole, conn)
                .map(|chain| (whole, chain))
                .inspect_err(|why| {
                    // Who waits for room waits for those that wait for more.
                    if why.errno() == Errno::EAGAIN {
                        conn.go();
                    }
                })
        });
        let (whole, chain) = match begun {
            Ok(begun) => begun,
            Err(why) => return Err(Refused::new(why, ticket)),
        };
        whole.accept(ticket);
        match conn.give_all(endpoint, chain, task.flags().more()) {
            Ok(()) => Ok(()),
            Err((error, chain)) => {
                let ticket = whole.take_back();
                drop(chain);
                let why = refused::not_posted(error);
                ticket.map_or(Ok(()), |ticket| Err(Refused::new(why, ticket)))
            }
        }
    }

    /// The requests that a transfer is split into.
    fn chain(
        &self,
        endpoint: &Arc<Endpoint>,
        task: &Task<'_>,
        whole: &Arc<Whole>,
        conn: &Arc<Conn>,
    ) -> Result<Chain, Refusal> {
        let parts = task.remote().pieces().len();
        if parts > self.sends() {
            let why = c"more pieces of the peer's memory than the queue has places";
            return Err(Refusal::new(Errno::E2BIG, why).value(widen(parts)));
        }
        let chain = endpoint.begin_chain();
        let mut chain = chain.map_err(refused::not_posted)?;
        task.each(|task| {
            let part = Part {
                whole: whole.clone(),
                conn: conn.clone(),
            };
            let begun = begin(self.request(&task), part, |request| chain.push(request));
            begun.map_err(|(why, _)| why)
        })?;
        Ok(chain)
    }
}
