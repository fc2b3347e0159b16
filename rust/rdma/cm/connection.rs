// SPDX-License-Identifier: GPL-2.0

//! Connections.
//!
//! MERGED cm/line.rs
//! What a connection goes through.
//!
//! ```text
//!              ADDR_RESOLVED   ROUTE_RESOLVED    CONNECT_RESPONSE
//!   Address ------------> Route -----------> Request ----------> Established -----> Ended
//!                                               ^    ESTABLISHED
//!                                   accept() ---+
//! ```
//!
//! Each step but the last is taken in the handler of an event, with the identifier's lock; so is
//! the end, or with the lock taken for it. Any step can be followed by the end.

use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

use core::{
    net::SocketAddr,
    ptr::null_mut, //
};

use rdma_bindings as b;

use super::{
    conn_param::{
        checked_len,
        ConnParam, //
        MAX_REQUEST_DATA,
    },
    endpoint::Endpoint,
    event::{
        Established,
        Event,
        Events,
        Rejected,
        Step, //
    },
    id::{
        Id,
        Lock,
        Locked,
        Target, //
    },
    timer::{
        StallTimer, //
        Timer,
    }, //
};

/// What is proposed to a peer, or agreed to.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    /// How the connection is to be; no more of it is asked for than the device can do, or the peer
    /// wants.
    pub terms: ConnParam,
    /// What the peer is told: no more than [`REQUEST`](MAX_REQUEST_DATA) or
    /// [`ACCEPTANCE`](MAX_ACCEPT_DATA) bytes.
    pub private_data: &'a [u8],
    /// How long to try until it is there, in milliseconds. The connection manager itself gives up
    /// after 74 seconds.
    pub limit: u32,
    /// How long send requests may be under way on the connection without one of them ending, in
    /// milliseconds, or half of that longer; 0 is for ever.
    pub stall: u32,
}

/// A connection of an [`Endpoint`], from when it is begun.
///
/// Dropping it ends it without a word to its [`Events`]: what is posted gets flushed, the peer is
/// told. That sleeps until an event that is being told has been, so it must not be done there.
/// [`Connection::close`] waits for what was posted, too.
///
/// # What goes first
///
/// See to it that nobody posts any more; close the connection; drop the endpoint; drop its
/// completion queues. When the device goes all that has to be done in [`Client::remove`]: the
/// connection manager's own removal, which comes after that of its users, waits for all
/// connections, without a bound and without a word.
///
/// [`Client::remove`]: crate::client::Client::remove
///
/// # Examples
///
/// ```ignore
/// let endpoint = Endpoint::new(qp)?;
/// let proposal = Proposal {
///     terms: ConnParam::default(),
///     private_data: b"hello",
///     limit: 10_000,
///     stall: 60_000,
/// };
/// let connection = Connection::open(&endpoint, None, peer, &proposal, events)?;
/// ... // `events` are told that it is there
/// endpoint.post(request)?;
/// ...
/// connection.close(10);
/// ```
pub struct Connection {
    id: Id<ConnState>,
}

impl Connection {
    /// Begins to connect an endpoint to an address, from an own one if that is given. May sleep,
    /// but doesn't wait: `events` are told.
    ///
    /// # Errors
    ///
    /// After one the endpoint is of no more use, unless it is one of the first two.
    ///
    /// - `EBUSY` if the endpoint is or was another connection's.
    /// - `EINVAL` if there are too much private data.
    /// - What the connection manager says, of an address that there can't be for instance.
    pub fn open(
        endpoint: &Arc<Endpoint>,
        from: Option<SocketAddr>,
        to: SocketAddr,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Self> {
        let state = new_state(endpoint, proposal, MAX_REQUEST_DATA, events, Step::Address)?;
        let this = Self {
            id: Id::new(state.clone())?,
        };
        state.begin(&this.id);
        // The first event may come at once.
        this.id.resolve(from, to, proposal.limit)?;
        Ok(this)
    }

    /// Begins to connect an identifier whose address is resolved.
    pub(super) fn request<T: Target>(
        id: Id<T>,
        endpoint: &Arc<Endpoint>,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Self> {
        let state = new_state(endpoint, proposal, MAX_REQUEST_DATA, events, Step::Route)?;
        Self::with(id, state, |state, locked| state.resolve_route(locked))
    }

    /// Goes on with an identifier that is not new, as `first` does.
    pub(super) fn with<T: Target>(
        id: Id<T>,
        state: Arc<ConnState>,
        first: impl FnOnce(&ConnState, &Locked<'_>) -> Result,
    ) -> Result<Self> {
        let (id, begun) = id.retarget(state, |id, locked| {
            let state = id.target();
            state.begin(id);
            first(state, locked)
        });
        let this = Self { id };
        begun.map(|()| this)
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        self.id.target().endpoint()
    }

    /// The address on this side, once there is one. Any context.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.local()
    }

    /// The peer's address. Any context.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.id.peer()
    }

    /// Where it is just now. Any context.
    pub fn step(&self) -> Step {
        self.id.target().step()
    }

    /// Disconnects: what is posted gets flushed, and the peer is told. May sleep, but doesn't wait
    /// for the peer: [`Event::Disconnected`](super::Event::Disconnected) comes when it agrees, or
    /// after more than a minute if it doesn't answer.
    pub fn disconnect(&self) {
        self.id.target().disconnect(&self.id.lock());
    }

    /// Disconnects in so many milliseconds, unless the peer does before. May sleep, but doesn't wait.
    pub fn disconnect_later(&self, ms: u32) {
        self.id.target().close_after(&self.id.lock(), ms);
    }

    /// Ends it, waits until all requests have ended, as [`Endpoint::drain`] does, and returns whether they have.
    /// Nobody may post any more.
    pub fn close(self, limit: u32) -> bool {
        let endpoint = self.endpoint().clone();
        self.id.target().close(&self.id);
        let drained = endpoint.drain(limit);
        drop(self);
        drained
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Before the identifier goes.
        self.id.target().close(&self.id);
    }
}

/// A connection of an endpoint, which becomes its, with so much private data at most.
pub(super) fn new_state(
    endpoint: &Arc<Endpoint>,
    proposal: &Proposal<'_>,
    most: usize,
    events: Arc<dyn Events>,
    step: Step,
) -> Result<Arc<ConnState>> {
    checked_len(proposal.private_data, most)?;
    let mut request = KVec::with_capacity(proposal.private_data.len(), GFP_KERNEL)?;
    request.extend_from_slice(proposal.private_data, GFP_KERNEL)?;
    let terms = proposal.terms.on(endpoint.device());
    let state = ConnState::new(
        endpoint.clone(),
        terms,
        request,
        (proposal.limit, StallTimer::new(proposal.stall)),
        events,
        step,
    )?;
    endpoint.claim()?;
    Ok(state)
}

/// A connection, as its events see it.
///
/// # Invariants
///
/// `step` changes with the identifier's lock only. `id` is there from when the timer has been set
/// until it has been called off.
#[pin_data]
pub(super) struct ConnState {
    endpoint: Arc<Endpoint>,
    terms: ConnParam,
    /// What is said in the request.
    request: KVec<u8>,
    /// How long to try, in milliseconds.
    limit: u32,
    stall: StallTimer,
    events: Arc<dyn Events>,
    step: Atomic<u32>,
    /// It is over when the timer expired next, or when it is established.
    closing: Atomic<bool>,
    id: Atomic<*mut b::rdma_cm_id>,
    #[pin]
    timer: Timer,
}

impl ConnState {
    /// A connection that is at this step. May sleep.
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        terms: ConnParam,
        request: KVec<u8>,
        (limit, stall): (u32, StallTimer),
        events: Arc<dyn Events>,
        step: Step,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                endpoint,
                terms,
                request,
                limit,
                stall,
                events,
                // CAST: The enum is `repr(u32)`.
                step: Atomic::new(step as u32),
                closing: Atomic::new(false),
                id: Atomic::new(null_mut()),
                // SAFETY: It is called with a pointer to the member of a state.
                timer <- unsafe { Timer::new(Self::expired) },
            }),
            GFP_KERNEL,
        )
    }

    /// Its endpoint.
    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// By what it is, or is to be.
    pub(super) fn terms(&self) -> &ConnParam {
        &self.terms
    }

    /// Where it is.
    pub(super) fn step(&self) -> Step {
        Step::from_raw(self.step.load(Relaxed))
    }

    /// Begins to measure the time, and to hear what the queue pair tells.
    pub(super) fn begin(&self, id: &Id<Self>) {
        // INVARIANT: Who has the identifier calls the timer off before it goes.
        self.id.store(id.as_raw(), Relaxed);
        // SAFETY: As for the timer.
        unsafe { self.endpoint.qp().comm_est().set_id(id.as_raw()) };
        self.timer.set(self.limit);
    }

    /// Ends for its owner, who is told nothing more. Sleeps. Afterwards neither the timer nor the
    /// queue pair has the identifier.
    pub(super) fn close(&self, id: &Id<Self>) {
        {
            let lock = id.lock();
            if self.step() != Step::Ended {
                self.finish(&lock);
            }
        }
        self.timer.cancel();
        self.endpoint.qp().comm_est().clear_id();
    }

    /// Disconnects, if that has any use. The lock must be held.
    pub(super) fn disconnect(&self, id: &Locked<'_>) {
        let step = self.step();
        if step != Step::Established {
            // The peer may have agreed already.
            self.closing.store(true, Relaxed);
        }
        self.disconnect_at(id, step);
    }

    /// Disconnects what is at this step, or was just now.
    fn disconnect_at(&self, id: &Locked<'_>, step: Step) {
        // After an error nothing is flushed. `Endpoint::drain()` tries again, and says so.
        let _ = self.endpoint.fail();
        // Over iWARP the connection manager would wait for the peer's answer, which it tells with
        // the lock. A connection that comes yet is ended then, or with the identifier.
        if step == Step::Established || !self.endpoint.is_iwarp(id) {
            // It may not be connected.
            let _ = id.disconnect();
        }
    }

    /// It has ended: nothing is told of it any more.
    fn finish(&self, id: &Locked<'_>) {
        let step = self.step();
        self.set_step(id, Step::Ended);
        self.disconnect_at(id, step);
    }

    fn set_step(&self, _id: &Locked<'_>, step: Step) {
        // CAST: The enum is `repr(u32)`.
        self.step.store(step as u32, Relaxed);
    }

    fn end(&self, id: &Locked<'_>, event: Event<'_>) {
        self.finish(id);
        self.events.event(event);
    }

    /// Ends if a step could not be taken.
    fn check(&self, id: &Locked<'_>, taken: Result) {
        if let Err(error) = taken {
            let step = self.step();
            self.end(id, Event::Failed { step, error });
        }
    }

    /// The device is known.
    fn resolved(&self, id: &Locked<'_>) -> Result {
        if !id.is_on(self.endpoint.device()) {
            return Err(EXDEV);
        }
        self.resolve_route(id)
    }

    /// Begins to resolve the route.
    pub(super) fn resolve_route(&self, id: &Locked<'_>) -> Result {
        self.set_step(id, Step::Route);
        id.set_timers(&self.terms)?;
        id.resolve_route(self.limit)
    }

    /// The way is known.
    fn request(&self, id: &Locked<'_>) -> Result {
        self.set_step(id, Step::Request);
        self.endpoint.prepare(id)?;
        id.connect(self.endpoint.qp(), &self.terms, &self.request)
    }

    /// The peer has accepted.
    fn accepted(&self, id: &Locked<'_>, answer: Established<'_>) -> Result {
        self.endpoint.connect(id, None).inspect_err(|_| {
            // If it can't be told it finds out.
            let _ = id.reject(&[]);
        })?;
        // This tells the peer if it fails.
        id.confirm()?;
        self.established(id, answer);
        Ok(())
    }

    fn established(&self, id: &Locked<'_>, answer: Established<'_>) {
        self.set_step(id, Step::Established);
        if self.closing.load(Relaxed) {
            return self.end(id, Event::Disconnected);
        }
        self.endpoint.enable_sends();
        match self.endpoint.is_broken() {
            // By what came before it was known to be there: the peer finds out, or not.
            true => self.close_after(id, self.limit),
            false => self.check_stall_later(id),
        }
        self.events.event(Event::Established(answer));
    }

    /// Ends it in so many milliseconds, unless it has ended by then. The lock must be held.
    pub(super) fn close_after(&self, _id: &Locked<'_>, ms: u32) {
        if self.step() == Step::Established && !self.closing.xchg(true, Relaxed) {
            self.timer.set(ms);
        }
    }

    /// Looks later whether requests get on.
    fn check_stall_later(&self, _id: &Locked<'_>) {
        if let Some(ms) = self.stall.interval() {
            self.timer.set(ms);
        }
    }

    /// The time is over: for a step, or to look whether requests get on.
    fn timed_out(&self, id: &Locked<'_>) {
        match self.step() {
            Step::Ended => (),
            Step::Established if self.closing.load(Relaxed) => self.end(id, Event::Disconnected),
            Step::Established => {
                let (in_flight, ended) = self.endpoint.qp().sends().progress();
                match self.stall.has_stalled(in_flight, ended) {
                    true => self.end(id, Event::Stalled),
                    false => self.check_stall_later(id),
                }
            }
            step => {
                let error = ETIMEDOUT;
                self.end(id, Event::Failed { step, error });
            }
        }
    }

    /// The timer expired.
    ///
    /// # Safety
    ///
    /// `timer` must be the member of a state that is there.
    unsafe fn expired(timer: *const Timer) {
        // SAFETY: By the requirements of this function.
        let this = unsafe { &*container_of!(timer, Self, timer) };
        // SAFETY: By the type invariant the identifier is there, as the timer has been set and is
        // not called off before this returns.
        let lock = unsafe { Lock::take(this.id.load(Relaxed)) };
        this.timed_out(&lock);
    }
}

impl Target for ConnState {
    fn event(&self, id: &Locked<'_>, event: &b::rdma_cm_event) -> Result {
        let failed = |step| Event::Failed {
            step,
            error: error_of(event.status),
        };
        match (self.step(), event.event) {
            // What was on its way when it ended. The peer is told now if it couldn't be then.
            (Step::Ended, b::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED) => {
                let _ = id.disconnect();
            }
            (Step::Ended, _) => (),
            (Step::Address, b::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED) => {
                self.check(id, self.resolved(id))
            }
            (Step::Route, b::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED) => {
                self.check(id, self.request(id))
            }
            (Step::Request, b::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_RESPONSE) => {
                self.check(id, self.accepted(id, Established::of(event)))
            }
            (Step::Request, b::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED) => {
                self.established(id, Established::of(event))
            }
            // A neighbour has got another address: packets may find their way, or requests fail.
            (Step::Established, b::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE)
            | (_, b::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE) => {
                self.events.event(Event::PathChanged)
            }
            (_, b::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED) => {
                let rejected = Rejected {
                    reason: event.status,
                    private_data: Established::of(event).private_data,
                };
                self.end(id, Event::Rejected(rejected));
            }
            (_, b::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED) => {
                self.end(id, Event::Disconnected)
            }
            // Not destroyed here: whoever owns it may just be about to.
            (_, b::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL) => {
                self.end(id, Event::DeviceRemoval)
            }
            (
                step,
                b::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR
                | b::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR
                | b::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
                | b::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE,
            ) => self.end(id, failed(step)),
            // `TIMEWAIT_EXIT` says that the queue pair could be used again, which none is.
            _ => (),
        }
        Ok(())
    }
}

/// The error that an event has as its status.
pub(super) fn error_of(status: c_int) -> Error {
    Error::from_errno(if status < 0 { status } else { EIO.to_errno() })
}
