// SPDX-License-Identifier: GPL-2.0

//! Endpoints that are connected and transfer something, of a provider.

use super::{
    cm::{
        Bounds,
        ConnRequest,
        Events, //
    },
    cq::Context,
    ep::Endpoint,
    ticket::Ticket, //
};
use crate::{
    post::{
        atomic::Atomics,
        flags::PostFlags,
        limits::LocalRules,
        local::LocalPieces,
        op::Op,
        remote::RemoteMemory, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::{
    any::Any,
    net::SocketAddr, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What a consumer wants of a new endpoint. Its numbers are within the domain's limits.
pub struct MsgEpRequest {
    /// How many transmit requests may be under way.
    pub tx_size: usize,
    /// How many receive requests may be posted.
    pub rx_size: usize,
    /// Its receives are those of a context that it shares: [`MsgEp::share`] says which, before it is enabled.
    pub shares: bool,
    /// The address that it is to have, if any was asked for.
    pub source: Option<SocketAddr>,
    /// The request that it is to answer, for the passive side.
    pub answers: Option<KBox<dyn ConnRequest>>,
    /// What regions are bound to.
    pub endpoint: Arc<Endpoint>,
    /// Who is told what becomes of its connection.
    pub events: Arc<Events>,
}

#[cfg(CONFIG_KUNIT = "y")]
impl MsgEpRequest {
    /// Returns a request for an endpoint whose events go to `told`, for unit tests of providers. The endpoint has
    /// one transmit and one receive request, and answers a connection request if the test passes one. May sleep.
    pub fn of_kunit(
        told: KBox<dyn super::cm::ConnHandler>,
        answers: Option<KBox<dyn ConnRequest>>,
    ) -> Result<Self> {
        let events = Arc::pin_init(Events::new(), GFP_KERNEL)?;
        events.set(Some(told));
        Ok(Self {
            tx_size: 1,
            rx_size: 1,
            shares: false,
            source: None,
            answers,
            endpoint: Arc::pin_init(Endpoint::new(KVec::new()), GFP_KERNEL)?,
            events,
        })
    }
}

/// What a domain's endpoints can do; constant.
#[derive(Clone, Copy, Debug)]
pub struct MsgLimits {
    /// The memory at this side.
    pub local: LocalRules,
    /// Most pieces of the peer's memory; at most 16.
    pub remote_pieces: usize,
    /// Which atomic operations there are.
    pub atomics: Atomics,
    /// Most transmit requests under way.
    pub tx_size: usize,
    /// Most receive requests.
    pub rx_size: usize,
    /// Most receive requests of a context that endpoints share; 0 where there are no such.
    pub shared_size: usize,
    /// Most bytes that can be the caller's again at once (`KFI_INJECT`); at most 64.
    pub inject_size: usize,
    /// Most bytes of data for the peer's completion queue.
    pub cq_data_size: usize,
    /// Most bytes that the peer gets with a request for a connection, with an acceptance, and with a
    /// rejection.
    pub cm_data_size: [usize; 3],
    /// Connections go by [`Bounds`].
    pub bounded: bool,
}

/// A transfer to be posted.
pub struct Post<'a> {
    task: Task<'a>,
    ticket: Ticket,
}

/// The memory at this side of a transfer.
#[derive(Clone, Copy)]
pub enum LocalMemory<'a> {
    /// The consumer's memory, which the consumer leaves alone until the transfer has ended.
    Lent(&'a LocalPieces),
    /// A copy of the bytes, which is there until posting returns. The consumer may free its memory then.
    Injected(&'a [u8]),
}

impl LocalMemory<'_> {
    /// Returns its length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Lent(local) => local.bytes(),
            Self::Injected(bytes) => widen(bytes.len()),
        }
    }
}

/// What is to be done: all that there is to a transfer, but for who hears of its end.
///
/// Only the core makes one, and it can't be kept: the memory is there as long as the transfer.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    op: Op,
    local: LocalMemory<'a>,
    remote: &'a RemoteMemory,
    flags: PostFlags,
}

impl<'a> Post<'a> {
    /// A transfer with its ticket.
    pub(crate) fn new(task: Task<'a>, ticket: Ticket) -> Self {
        Self { task, ticket }
    }

    /// What is to be done, and what is to be ended when it has ended.
    pub fn into_parts(self) -> (Task<'a>, Ticket) {
        (self.task, self.ticket)
    }

    /// What is to be done.
    pub(super) fn task(&self) -> Task<'a> {
        self.task
    }

    /// Doesn't accept it.
    pub fn refuse(self, why: Refusal) -> Refused {
        Refused::new(why, self.ticket)
    }
}

impl<'a> Task<'a> {
    /// A transfer of this memory. Lent memory is there until the transfer has ended.
    pub(crate) fn new(
        op: Op,
        local: LocalMemory<'a>,
        remote: &'a RemoteMemory,
        flags: PostFlags,
    ) -> Self {
        Self {
            op,
            local,
            remote,
            flags,
        }
    }

    /// What it does.
    pub fn op(&self) -> Op {
        self.op
    }

    /// The memory at this side.
    pub fn local(&self) -> LocalMemory<'a> {
        self.local
    }

    /// The peer's memory, if it goes to some that the peer has told of.
    pub fn remote(&self) -> &'a RemoteMemory {
        self.remote
    }

    /// How.
    pub fn flags(&self) -> PostFlags {
        self.flags
    }

    /// Calls `f` with a task for each piece of the peer's memory, in order, until it returns an error.
    /// Together they do the same: the first one waits if this does, and the last one has the data for
    /// the peer. Any context.
    pub fn each<E>(&self, mut f: impl FnMut(Task<'_>) -> Result<(), E>) -> Result<(), E> {
        let pieces = self.remote.pieces();
        let mut at = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let lent;
            let local = match self.local {
                LocalMemory::Lent(local) => {
                    lent = local.part(at, piece.len);
                    LocalMemory::Lent(&lent)
                }
                LocalMemory::Injected(bytes) => {
                    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                    let rest = rest.unwrap_or(&[]);
                    let len = usize::try_from(piece.len).unwrap_or(usize::MAX);
                    LocalMemory::Injected(rest.get(..len).unwrap_or(rest))
                }
            };
            let remote = RemoteMemory::of(*piece);
            at += piece.len;
            f(Task {
                op: match index + 1 == pieces.len() {
                    true => self.op,
                    false => self.op.without_data(),
                },
                local,
                remote: &remote,
                flags: match index {
                    0 => self.flags,
                    _ => self.flags.without_fence(),
                },
            })?;
        }
        Ok(())
    }
}

/// A transfer that was not accepted, with the ticket, of which nothing is reported then.
pub struct Refused {
    why: Refusal,
    ticket: Ticket,
}

impl Refused {
    /// Says why (`EAGAIN`: there is no room for it now), and gives the ticket back as it was.
    pub fn new(why: Refusal, ticket: Ticket) -> Self {
        Self { why, ticket }
    }

    /// Nothing is reported of the transfer of this context. If the ticket is another's, that one is never
    /// ended, since its memory may be in use, and this transfer is under way.
    pub(crate) fn settle(self, context: Context) -> Result<(), Refusal> {
        if self.ticket.context() != context {
            core::mem::forget(self.ticket);
            return Ok(());
        }
        self.ticket.refuse();
        Err(self.why)
    }
}

/// How many more requests an endpoint has places for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSpace {
    /// To the peer.
    pub sends: usize,
    /// Receives.
    pub receives: usize,
}

/// An endpoint: created, enabled, connected once, closed, then dropped.
///
/// The core calls in this order, and what changes it one at a time; [`shutdown`](Self::shutdown) and
/// [`end`](Self::end) may come at any time after enabling.
pub trait MsgEp: Send + Sync {
    /// Takes its receives from this context from now on, which one of the same domain's provider has opened,
    /// and which stays open until this has been closed. Called once at most, before it is enabled, of an
    /// endpoint that was opened to share one. May sleep.
    fn share(&self, _context: &dyn Srx) -> Result<(), Refusal> {
        Err(Refusal::new(Errno::ENOSYS, c"endpoints share no receives"))
    }

    /// Lets receives be posted. May sleep.
    fn enable(&self) -> Result<(), Refusal>;

    /// Begins to connect to a peer, which gets `data`; [`Events`] say what becomes of it. May sleep.
    fn connect(&self, peer: SocketAddr, data: &[u8], bounds: &Bounds) -> Result<(), Refusal>;

    /// Accepts the request that it was made to answer; the peer gets `data`. May sleep.
    fn accept(&self, data: &[u8], bounds: &Bounds) -> Result<(), Refusal>;

    /// Takes the connection down, if there is one; all that is under way ends soon. May sleep.
    fn shutdown(&self);

    /// Its own address. May sleep.
    fn name(&self) -> Option<SocketAddr>;

    /// The peer's address. May sleep.
    fn peer(&self) -> Option<SocketAddr>;

    /// Begins a transfer: a receive from enabling on, others while it is connected; also later, when
    /// they are refused or end soon. Any context.
    fn post(&self, post: Post<'_>) -> Result<(), Refused>;

    /// How many more requests there are places for. Any context.
    fn room(&self) -> QueueSpace;

    /// Ends a receive of this context that no message has come for yet, as cancelled. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: there is none, or it can't be taken back any more.
    /// - `ENOSYS`: none can.
    fn cancel(&self, _context: Context) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"what was posted can't be taken back",
        ))
    }

    /// Ends the connection, and waits until all that was accepted has ended, and nobody is told
    /// anything any more. Called once, or twice if the device goes. Sleeps.
    fn end(&self);
}

/// A receive context that endpoints share: opened, closed after all that share it, then dropped.
pub trait Srx: Any + Send + Sync {
    /// Takes a receive, for whichever of the endpoints needs one. Any context.
    fn post(&self, post: Post<'_>) -> Result<(), Refused>;

    /// How many more receives there are places for. Any context.
    fn room(&self) -> usize;

    /// As [`MsgEp::cancel`]. Any context.
    fn cancel(&self, _context: Context) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"what was posted can't be taken back",
        ))
    }

    /// Takes no receives any more, and ends those that no endpoint has taken: at once, or when the last
    /// endpoint that shares it has ended, if the device goes. Called once, or twice then. Sleeps.
    fn end(&self);

    /// `self` as [`Any`], for [`MsgEp::share`]. Any context.
    fn as_any(&self) -> &dyn Any;
}
