// SPDX-License-Identifier: GPL-2.0

//! Connected endpoints of a provider.

use super::{
    cm::{
        Bounds,
        ConnEvents, //
        ConnRequest,
    },
    cq::{
        Context,
        Delivery, //
    },
    ep::EpCore,
    ticket::Ticket, //
};
use crate::{
    post::{
        local::LocalRules,
        Atomics,
        TransferRequest, //
    },
    prelude::*, //
};
use core::any::Any;
use kfi_bindings as c;

/// The requested attributes of a new endpoint, which are within the domain's limits.
pub struct MsgEpRequest {
    /// The maximum number of pending transmit requests.
    pub tx_size: usize,
    /// The maximum number of pending receive requests.
    pub rx_size: usize,
    /// The endpoint takes its receives from a shared context, which [`MsgEpOps::share`] sets.
    pub shares: bool,
    /// The requested local address.
    pub source: Option<SocketAddr>,
    /// The connection request to accept, on the passive side.
    pub answers: Option<ConnRequest>,
    /// The endpoint for bound regions.
    pub endpoint: Arc<EpCore>,
    /// The receiver of connection events.
    pub events: Arc<ConnEvents>,
}

#[cfg(CONFIG_KUNIT = "y")]
impl MsgEpRequest {
    /// Returns a request for an endpoint whose events go to `told`, for unit tests of providers. The endpoint has
    /// one transmit and one receive request, and answers a connection request if the test passes one. May sleep.
    pub fn of_kunit(
        told: KBox<dyn super::cm::ConnHandler>,
        answers: Option<ConnRequest>,
    ) -> Result<Self> {
        let events = Arc::pin_init(ConnEvents::new(), GFP_KERNEL)?;
        events.set(Some(told));
        Ok(Self {
            tx_size: 1,
            rx_size: 1,
            shares: false,
            source: None,
            answers,
            endpoint: Arc::pin_init(EpCore::new(KVec::new()), GFP_KERNEL)?,
            events,
        })
    }
}

/// The limits of a domain's endpoints; constant.
#[derive(Clone, Copy, Debug)]
pub struct MsgLimits {
    /// The rules for local memory.
    pub local: LocalRules,
    /// Maximum number of pieces of the peer's memory; at most 16.
    pub remote_pieces: usize,
    /// The supported atomic operations.
    pub atomics: Atomics,
    /// Maximum number of pending transmit requests.
    pub tx_size: usize,
    /// Maximum number of pending receive requests.
    pub rx_size: usize,
    /// Maximum number of pending receive requests of a shared context, or 0 without shared contexts.
    pub shared_size: usize,
    /// Maximum length of an injected message (`KFI_INJECT`) in bytes; at most 64.
    pub inject_size: usize,
    /// Maximum length of immediate data for the peer's completion queue, in bytes.
    pub cq_data_size: usize,
    /// Maximum length of private data with a connection request, an acceptance and a rejection, in bytes.
    pub cm_data_size: [usize; 3],
    /// Connections support [`Bounds`].
    pub bounded: bool,
}

/// Returns the code point of a traffic class, or `None` for best effort. Any context.
///
/// # Errors
///
/// - `ENODATA`: it is another class.
pub(crate) fn dscp(tclass: u32) -> Result<Option<u8>, Refusal> {
    match tclass {
        c::KFI_TC_UNSPEC | c::KFI_TC_BEST_EFFORT => Ok(None),
        // The helper kfi_tc_dscp_set() makes these. A code point has six bits.
        _ => match u8::try_from(tclass ^ c::KFI_TC_DSCP) {
            Ok(dscp @ 0..=63) => Ok(Some(dscp)),
            _ => {
                let refusal = Refusal::new(Errno::ENODATA, c"no such traffic class");
                Err(refusal.value(u64::from(tclass)))
            }
        },
    }
}

/// A transfer to post, with its ticket. Lent memory of the transfer stays valid until the ticket ends.
///
/// # Invariants
///
/// `ticket` is that of `transfer`.
pub struct Post<'a> {
    pub(crate) transfer: &'a TransferRequest,
    pub(crate) ticket: Ticket,
}

impl<'a> Post<'a> {
    /// Returns the transfer and its ticket.
    pub fn into_parts(self) -> (&'a TransferRequest, Ticket) {
        (self.transfer, self.ticket)
    }

    /// Refuses the transfer.
    pub fn refuse(self, why: Refusal) -> PostRefusal {
        PostRefusal::new(why, self.ticket)
    }
}

/// A refused transfer, with its ticket. It has no completion.
pub struct PostRefusal {
    why: Refusal,
    ticket: Ticket,
}

impl PostRefusal {
    /// Returns the ticket with a reason. `EAGAIN` means that the queue is full.
    pub fn new(why: Refusal, ticket: Ticket) -> Self {
        Self { why, ticket }
    }

    /// Drops the ticket without a completion, and returns the reason. If the provider returned the ticket of another
    /// transfer, this leaks the ticket, because the memory of that transfer may be in use.
    pub(crate) fn settle(self, context: Context) -> Result<(), Refusal> {
        if self.ticket.context() != context {
            core::mem::forget(self.ticket);
            return Ok(());
        }
        self.ticket.refuse();
        Err(self.why)
    }
}

/// The number of requests that an endpoint can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSpace {
    /// Transmit requests.
    pub sends: usize,
    /// Receive requests.
    pub receives: usize,
}

/// A connected endpoint.
///
/// The core opens it, enables it, connects it once, ends it and drops it, one call at a time. It may call
/// [`shutdown`](Self::shutdown) and [`end`](Self::end) at any time after enabling.
pub trait MsgEpOps: Send + Sync {
    /// Sets the shared context of the receives. The context is of the same domain, and stays open until the core has
    /// closed the endpoint. The core calls this at most once, before it enables the endpoint. May sleep.
    fn share(&self, _context: &dyn Srx) -> Result<(), Refusal> {
        Err(Refusal::new(Errno::ENOSYS, c"endpoints share no receives"))
    }

    /// Enables the endpoint, so that it takes receives. `receive` holds for completions of receives, and `transmit` for all
    /// others. The core may try again after a failure. May sleep.
    fn enable(&self, transmit: Delivery, receive: Delivery) -> Result<(), Refusal>;

    /// Starts to connect to a peer, which gets `data`. The provider reports the result by [`ConnEvents`]. May sleep.
    fn connect(&self, peer: SocketAddr, data: &[u8], bounds: &Bounds) -> Result<(), Refusal>;

    /// Accepts the connection request of the endpoint. The peer gets `data`. May sleep.
    fn accept(&self, data: &[u8], bounds: &Bounds) -> Result<(), Refusal>;

    /// Shuts down the connection, if there is one. Pending transfers end soon. May sleep.
    fn shutdown(&self);

    /// Returns the local address. May sleep.
    fn name(&self) -> Option<SocketAddr>;

    /// Returns the peer's address. May sleep.
    fn peer(&self) -> Option<SocketAddr>;

    /// Posts a transfer. The core posts receives from enabling on, and other transfers while the endpoint is connected.
    /// After the end of the connection, the provider refuses transfers or ends them soon. Any context.
    fn post(&self, post: Post<'_>) -> Result<(), PostRefusal>;

    /// Posts the accepted transfers that wait for more (`KFI_MORE`). Any context.
    fn flush(&self) {}

    /// Returns the number of requests that the endpoint can take. Any context.
    fn room(&self) -> QueueSpace;

    /// Cancels a receive of this context that no message has arrived for. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: there is no receive that can be cancelled.
    /// - `ENOSYS`: the provider can't cancel receives.
    fn cancel(&self, _context: Context) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"what was posted can't be taken back",
        ))
    }

    /// Ends the connection, and waits until all accepted transfers have ended. No event follows. The core calls this once,
    /// or twice if the device is removed. Sleeps.
    fn end(&self);
}

/// A shared receive context. The core ends it after all endpoints that share it, then drops it.
pub trait Srx: Any + Send + Sync {
    /// Posts a receive for any of the endpoints. Any context.
    fn post(&self, post: Post<'_>) -> Result<(), PostRefusal>;

    /// Returns the number of receives that the context can take. Any context.
    fn room(&self) -> usize;

    /// Cancels a receive as [`MsgEpOps::cancel`] does. Any context.
    fn cancel(&self, _context: Context) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"what was posted can't be taken back",
        ))
    }

    /// Refuses later receives, and ends those that no endpoint has taken. If the device is removed, the provider may wait
    /// for the last endpoint to end, and the core calls this twice. Sleeps.
    fn end(&self);

    /// Returns `self` as [`Any`], for [`MsgEpOps::share`]. Any context.
    fn as_any(&self) -> &dyn Any;
}
