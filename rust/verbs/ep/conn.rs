// SPDX-License-Identifier: GPL-2.0

//! The connection of an endpoint, and the requests that it sends.
//!
//! A request with `KFI_MORE` waits, so that the device gets it and the next requests with one doorbell.
//!
//! Lock order: the lock of the requests is before those of the driver. No transfer ends under it.

use super::reg_states::RegStates;
use crate::prelude::*;
use kfabric::provider::cm::{
    Bounds,
    ConnEvents,
    ConnFailed, //
};
use rdma::{
    cm::{
        Chain,
        ConnParam,
        Connection,
        Endpoint,
        Event,
        Incoming,
        Proposal,
        Tail,
        Unposted,
        REJECTED_BY_CONSUMER, //
    },
    request::{
        NotPosted,
        Request, //
    },
    reusable_mr::{
        ReadyRequest,
        RegistrationHandler, //
    }, //
};

/// How long the peer has to find out for itself that its message has failed here, in milliseconds. If
/// it didn't get the time it would be told that its message was cancelled, and not why.
const PEER_LIMIT: u32 = 10_000;

/// How long to wait for requests to be flushed, in seconds, for each of two queues.
const DRAIN_LIMIT: u32 = 10;

/// Where a connection is.
enum Stage {
    /// None has been tried. There may be a request to answer.
    New(Option<Incoming>),
    /// It was begun, and may have ended.
    Begun(Connection),
    /// The endpoint is over.
    Over,
}

impl Stage {
    /// Notes the result of the endpoint's only attempt to connect.
    fn begin(&mut self, begun: Result<Connection>) -> Result<(), Refusal> {
        let (stage, result) = match begun {
            Ok(connection) => (Self::Begun(connection), Ok(())),
            Err(error) => {
                let why = c"the connection can't be begun";
                let refusal = driver_errors::driver(driver_errors::connecting(error), why, error);
                (Self::Over, Err(refusal))
            }
        };
        *self = stage;
        result
    }
}

/// The requests of a connection that are not posted, and the last unsignaled ones that are.
enum Sends {
    /// The connection accepts requests.
    Open {
        /// The waiting requests, if any.
        waiting: Option<Chain>,
        /// The last posted unsignaled requests, whose completion a later request reports.
        tail: Option<Tail>,
    },
    /// The device has refused waiting requests. Dropping them calls their handlers.
    Failed { _unposted: Unposted },
    /// The connection accepts no more requests.
    Shut,
}

impl Sends {
    /// Takes the chain of waiting requests, or begins one.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection accepts no more requests. This one would overtake requests that have ended without
    ///   being sent.
    fn begin(&mut self, endpoint: &Arc<Endpoint>) -> Result<Chain> {
        let Self::Open { waiting, tail } = self else {
            return Err(Errno::ENOTCONN.into());
        };
        match waiting.take() {
            Some(chain) => Ok(chain),
            None => endpoint.begin_chain_behind(tail),
        }
    }

    /// Checks whether a signaled request can be posted without a chain.
    fn is_idle(&self) -> bool {
        matches!(
            self,
            Self::Open {
                waiting: None,
                tail: None
            }
        )
    }

    /// Keeps a chain if it `waits`, or posts it. Returns whether the device refuses it.
    fn set(&mut self, chain: Chain, waits: bool) -> bool {
        if waits {
            *self = Self::Open {
                waiting: Some(chain),
                tail: None,
            };
            return false;
        }
        match chain.try_post() {
            Ok(tail) => {
                let waiting = None;
                *self = Self::Open { waiting, tail };
                false
            }
            Err(_unposted) => {
                *self = Self::Failed { _unposted };
                true
            }
        }
    }
}

/// The kind of a request's completion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// The request completes.
    Signaled,
    /// The request completes if it fails. Otherwise a later request reports its completion, unless many
    /// unsignaled requests precede it.
    Unsignaled,
}

/// The connection of an endpoint, from before there is one.
#[pin_data]
pub(super) struct Conn {
    source: Option<SocketAddr>,
    events: Arc<ConnEvents>,
    queue: Arc<OwnedQueue>,
    #[pin]
    sends: IrqLock<Sends>,
    /// States of regions that were registered on the connection.
    #[pin]
    pub(super) reg_states: RegStates,
    #[pin]
    stage: Mutex<Stage>,
    /// A request to the peer has failed.
    failed: Atomic<bool>,
    /// It is known why the connection ends, or has ended.
    has_cause: Atomic<bool>,
    /// Takes the connection down after a request has failed.
    #[pin]
    work: Work<Conn>,
}

impl_has_work! {
    impl HasWork<Self> for Conn { self.work }
}

impl Conn {
    /// Creates the state of an endpoint that has no connection yet. At most `tx_size` of its requests are under way
    /// at a time. May sleep.
    pub(super) fn new(
        tx_size: usize,
        source: Option<SocketAddr>,
        answers: Option<Incoming>,
        events: Arc<ConnEvents>,
        queue: Arc<OwnedQueue>,
    ) -> Result<Arc<Self>, Refusal> {
        let source = answers.as_ref().map_or(source, Incoming::local);
        let reg_states = RegStates::new(tx_size).map_err(|_| Errno::ENOMEM)?;
        let sends = Sends::Open {
            waiting: None,
            tail: None,
        };
        let conn = pin_init!(Self {
            source,
            events,
            queue,
            sends <- new_irq_lock!(sends, c"kfi_verbs_staged"),
            reg_states <- reg_states,
            stage <- new_mutex!(Stage::New(answers)),
            failed: Atomic::new(false),
            has_cause: Atomic::new(false),
            work <- new_work!("kfi_verbs_conn"),
        });
        Arc::pin_init(conn, GFP_KERNEL).map_err(|_| Errno::ENOMEM.into())
    }

    /// Begins to connect. May sleep.
    pub(super) fn connect(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        peer: SocketAddr,
        data: &[u8],
        bounds: &Bounds,
    ) -> Result<(), Refusal> {
        let events = Arc::new(Telling(self.clone()), GFP_KERNEL)?;
        let mut stage = self.stage.lock();
        match &*stage {
            Stage::New(None) => (),
            _ => return Err(driver_errors::connected_before()),
        }
        let begun = Connection::open(endpoint, self.source, peer, &proposal(data, bounds), events);
        stage.begin(begun)
    }

    /// Accepts the request that there is. May sleep.
    pub(super) fn accept(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        data: &[u8],
        bounds: &Bounds,
    ) -> Result<(), Refusal> {
        let events = Arc::new(Telling(self.clone()), GFP_KERNEL)?;
        let mut stage = self.stage.lock();
        let Stage::New(answers) = &mut *stage else {
            return Err(driver_errors::connected_before());
        };
        let none = Refusal::new(Errno::EOPBADSTATE, c"made to answer no request");
        let request = answers.take().ok_or(none)?;
        stage.begin(request.accept(endpoint, &proposal(data, bounds), events))
    }

    /// Takes the connection down, if there is one. May sleep.
    pub(super) fn shut_down(&self) {
        self.has_cause.store(true, Relaxed);
        // First, so that nobody posts anything when it is told of the others.
        self.events.shut_down();
        self.shut_sends();
        if let Stage::Begun(connection) = &*self.stage.lock() {
            connection.disconnect();
        }
    }

    /// Takes the connection down after a request has failed. Any context.
    pub(super) fn fail(self: &Arc<Self>) {
        self.has_cause.store(true, Relaxed);
        self.failed.store(true, Relaxed);
        self.fail_later();
    }

    /// Takes the connection down if nobody else does, after a receive has failed or a request was
    /// flushed. The peer learns of a failed receive. A flush mostly follows the end of the
    /// connection. Any context.
    pub(super) fn fail_later(self: &Arc<Self>) {
        // Work that is queued already has yet to run.
        let _ = self.queue.enqueue(self.clone());
    }

    /// Takes the connection down after a receive has failed, as [`fail_later`](Self::fail_later). Any context.
    pub(super) fn fail_by_receive(self: &Arc<Self>) {
        self.has_cause.store(true, Relaxed);
        self.fail_later();
    }

    /// Takes the connection down after a request about a region was flushed. If nothing else has failed, it may be this
    /// request: rxe reports a flush of the request that has failed, too. Any context.
    pub(super) fn fail_by_region(self: &Arc<Self>) {
        match self.has_cause.load(Relaxed) {
            true => self.fail_later(),
            false => self.fail(),
        }
    }

    /// Posts a request behind the waiting ones, or lets it wait with them if `more` follow. If the device
    /// refuses an accepted request, the connection fails. Any context.
    pub(super) fn give<K, F>(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        request: KBox<Request<WorkRequest<K>, F>>,
        more: bool,
        signal: Signal,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>>
    where
        K: Send + 'static,
        F: CompletionHandler<WorkRequest<K>>,
    {
        let (given, failed) = self.sends.with(|sends| {
            if !more && signal == Signal::Signaled && sends.is_idle() {
                return (endpoint.post(request), false);
            }
            let mut chain = match sends.begin(endpoint) {
                Ok(chain) => chain,
                Err(error) => return (Err(NotPosted { error, request }), false),
            };
            let given = match signal {
                Signal::Signaled => chain.push(request),
                Signal::Unsignaled => chain.push_unsignaled(request),
            };
            // If the queue is full, the waiting requests are posted: their completions make space.
            let waits = more && given.is_ok();
            (given, sends.set(chain, waits))
        });
        if failed {
            self.fail();
        }
        given
    }

    /// Posts a request about a region that is registered again and again, like [`give`](Self::give). Any context.
    pub(super) fn give_ready<F: RegistrationHandler>(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        request: ReadyRequest<F>,
        more: bool,
        signal: Signal,
    ) -> Result {
        let (given, failed) = self.sends.with(|sends| {
            let mut chain = match sends.begin(endpoint) {
                Ok(chain) => chain,
                Err(error) => return (Err(error), false),
            };
            let given = match signal {
                Signal::Signaled => chain.push_ready(request),
                Signal::Unsignaled => chain.push_ready_unsignaled(request),
            };
            let waits = more && given.is_ok();
            (given, sends.set(chain, waits))
        });
        if failed {
            self.fail();
        }
        given
    }

    /// Posts several requests like [`give`](Self::give). Returns refused requests. Any context.
    pub(super) fn give_all(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        requests: Chain,
        more: bool,
    ) -> Result<(), (Error, Chain)> {
        let failed = self.sends.with(|sends| {
            let mut chain = match sends.begin(endpoint) {
                Ok(chain) => chain,
                Err(error) => return Err((error, requests)),
            };
            chain.append(requests);
            Ok(sends.set(chain, more))
        })?;
        if failed {
            self.fail();
        }
        Ok(())
    }

    /// Posts the waiting requests. Any context.
    pub(super) fn go(self: &Arc<Self>) {
        let failed = self.sends.with(|sends| match &mut **sends {
            Sends::Open { waiting, .. } => match waiting.take() {
                Some(chain) => sends.set(chain, false),
                None => false,
            },
            _ => false,
        });
        if failed {
            self.fail();
        }
    }

    /// Checks whether the connection accepts requests. Any context.
    pub(super) fn is_open(&self) -> bool {
        self.sends
            .with(|sends| matches!(**sends, Sends::Open { .. }))
    }

    /// Cancels the waiting requests, and refuses later ones. May call handlers of completion queues.
    fn shut_sends(&self) {
        let shut = |sends: &mut Sends| core::mem::replace(sends, Sends::Shut);
        let waiting = self.sends.with(|sends| shut(sends));
        drop(waiting);
    }

    /// Returns the local address. May sleep.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        match &*self.stage.lock() {
            Stage::Begun(connection) => connection.local().or(self.source),
            _ => self.source,
        }
    }

    /// Returns the address of the peer. May sleep.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        match &*self.stage.lock() {
            Stage::New(answers) => answers.as_ref()?.peer(),
            Stage::Begun(connection) => connection.peer(),
            Stage::Over => None,
        }
    }

    /// Ends it, and all that was posted on its endpoint. Sleeps until that is so, or until the
    /// device has had its time.
    pub(super) fn end(&self, endpoint: Option<&Arc<Endpoint>>) {
        self.has_cause.store(true, Relaxed);
        self.shut_sends();
        let stage = core::mem::replace(&mut *self.stage.lock(), Stage::Over);
        match stage {
            // Requests that are left end with the queue pair, or are lost with it.
            Stage::Begun(connection) => drop(connection.close(DRAIN_LIMIT)),
            stage => {
                drop(stage);
                if let Some(endpoint) = endpoint {
                    endpoint.drain(DRAIN_LIMIT);
                }
            }
        }
    }
}

fn proposal<'a>(private_data: &'a [u8], bounds: &Bounds) -> Proposal<'a> {
    Proposal {
        terms: ConnParam {
            tos: bounds.dscp.map(|dscp| dscp << 2),
            ..ConnParam::default().with_rnr_delay(bounds.rnr_delay)
        },
        private_data,
        limit: bounds.connect,
        stall: bounds.stall,
    }
}

impl WorkItem for Conn {
    type Pointer = Arc<Self>;

    /// Takes the connection down. May sleep, but not for long.
    fn run(this: Arc<Self>) {
        let _noio = NoIo::enter();
        if this.failed.load(Relaxed) {
            this.shut_down();
        } else if let Stage::Begun(connection) = &*this.stage.lock() {
            connection.disconnect_later(PEER_LIMIT);
        }
    }
}

/// Tells the core what becomes of a connection. It goes with that, which [`Conn::end`] does.
struct Telling(Arc<Conn>);

impl rdma::cm::Events for Telling {
    fn event(&self, event: Event<'_>) {
        let events = &self.0.events;
        let failed = |errno, prov_errno, data| {
            events.failed(ConnFailed { errno, prov_errno }, data);
        };
        match event {
            Event::Established(answer) => events.connected(answer.private_data),
            // The reason is only for the consumer if the peer's consumer sent it.
            Event::Rejected(answer) => {
                let data = match answer.reason {
                    REJECTED_BY_CONSUMER => answer.private_data,
                    _ => &[],
                };
                let number = driver_errors::rejected(answer.reason);
                failed(Errno::ECONNREFUSED, number, data)
            }
            Event::Failed { error, .. } => {
                failed(driver_errors::connecting(error), error.to_errno(), &[])
            }
            Event::Stalled | Event::Disconnected | Event::DeviceRemoval => {
                self.0.has_cause.store(true, Relaxed);
                events.shut_down();
                self.0.shut_sends();
            }
            Event::PathChanged => (),
        }
    }
}
