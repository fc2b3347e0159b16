// SPDX-License-Identifier: GPL-2.0

//! Connections and their states.
//!
//! ```text
//!     ADDR_RESOLVED   ROUTE_RESOLVED    CONNECT_RESPONSE
//! Address ------------> Route -----------> Request ----------> Established -----> Ended
//!                                               ^    ESTABLISHED
//!                                   accept() ---+
//! ```
//!
//! The handler of an event takes each step with the lock of the identifier. Any state can be
//! followed by `Ended`, also outside of a handler but with the lock.

use super::*;

/// Parameters that this side offers to a peer.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    /// Parameters of the connection. The limits of the device and of the peer apply.
    pub terms: ConnParam,
    /// Private data for the peer: at most [`MAX_REQUEST_DATA`] or
    /// [`MAX_ACCEPT_DATA`] bytes.
    pub private_data: &'a [u8],
    /// Time limit for connecting, in milliseconds. The connection manager gives up after 74
    /// seconds.
    pub limit: u32,
    /// Time without a completion after which a connection with send requests in flight is stalled,
    /// in milliseconds. The check may be late by half of that. 0 disables it.
    pub stall: u32,
}

/// A connection of an [`Endpoint`].
///
/// Dropping it disconnects without an event: the posted requests are flushed, and the peer is
/// notified. The drop sleeps until a running handler has returned, so it must not be called in a
/// handler. [`Connection::close`] also waits for the requests.
///
/// # Order of destruction
///
/// 1. Stop posting.
/// 2. Close the connection.
/// 3. Drop the endpoint.
/// 4. Drop its completion queues.
///
/// If the device is removed, [`Client::remove`] must do all of this. The connection manager's own
/// removal comes after that of its users, and waits for all connections without a limit.
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
    /// Begins to connect an endpoint to an address, from the address `from` if it is given. May
    /// sleep, but does not wait for the peer: `events` report the result.
    ///
    /// # Errors
    ///
    /// After an error other than the first two the endpoint is unusable.
    ///
    /// - `EBUSY` if the endpoint belongs or belonged to another connection.
    /// - `EINVAL` if the private data are too long.
    /// - The error of the connection manager, for instance for an invalid address.
    pub fn open(
        endpoint: &Arc<Endpoint>,
        from: Option<SocketAddr>,
        to: SocketAddr,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Self> {
        let state = ConnState::new(endpoint, proposal, MAX_REQUEST_DATA, events, Step::Address)?;
        let this = Self {
            id: Id::new(state.clone())?,
        };
        state.begin(&this.id);
        if let Some(tos) = proposal.terms.tos {
            this.id.set_tos(tos);
        }
        // The first event may arrive during this call.
        this.id.resolve(from, to, proposal.limit)?;
        Ok(this)
    }

    /// Connects an identifier that already exists: calls `first` with its lock held.
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

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.id.target().endpoint
    }

    /// Returns the local address, if it is known. Any context.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.local()
    }

    /// Returns the address of the peer. Any context.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.id.peer()
    }

    /// Returns the current state. Any context.
    pub fn step(&self) -> Step {
        self.id.target().step()
    }

    /// Disconnects: flushes the posted requests and notifies the peer. May sleep, but does not wait
    /// for the peer. [`Event::Disconnected`] follows the peer's answer, or comes after more than a
    /// minute without one.
    pub fn disconnect(&self) {
        self.id.target().disconnect(&self.id.lock());
    }

    /// Disconnects after `ms` milliseconds, unless the peer does earlier. May sleep, but does not
    /// wait.
    pub fn disconnect_later(&self, ms: u32) {
        self.id.target().close_after(&self.id.lock(), ms);
    }

    /// Disconnects and waits until all requests have completed, as [`Endpoint::drain`] does.
    /// Returns whether they have. The caller must have stopped posting.
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
        // The timer and the queue pair use the identifier, which is dropped after this.
        self.id.target().close(&self.id);
    }
}

/// The state of a connection, as its event handler uses it.
///
/// # Invariants
///
/// - `step` changes with the identifier's lock only.
/// - `id` is valid from [`begin`](Self::begin) until [`close`](Self::close) has returned.
#[pin_data]
pub(super) struct ConnState {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) terms: ConnParam,
    /// Private data of the request.
    request: KVec<u8>,
    /// Time limit for connecting, in milliseconds.
    limit: u32,
    stall: StallTimer,
    events: Arc<dyn Events>,
    step: Atomic<Step>,
    /// The connection ends when the timer expires, or when it is established.
    closing: Atomic<bool>,
    id: Atomic<*mut b::rdma_cm_id>,
    #[pin]
    timer: Timer,
}

impl ConnState {
    /// Creates a connection in the state `step`, and claims the endpoint for it. `most` is the
    /// maximum length of the private data, in bytes. May sleep.
    pub(super) fn new(
        endpoint: &Arc<Endpoint>,
        proposal: &Proposal<'_>,
        most: usize,
        events: Arc<dyn Events>,
        step: Step,
    ) -> Result<Arc<Self>> {
        checked_len(proposal.private_data, most)?;
        let mut request = KVec::with_capacity(proposal.private_data.len(), GFP_KERNEL)?;
        request.extend_from_slice(proposal.private_data, GFP_KERNEL)?;
        let state = Arc::pin_init(
            pin_init!(Self {
                endpoint: endpoint.clone(),
                terms: proposal.terms.on(endpoint.device()),
                request,
                limit: proposal.limit,
                stall: StallTimer::new(proposal.stall),
                events,
                step: Atomic::new(step),
                closing: Atomic::new(false),
                id: Atomic::new(null_mut()),
                // SAFETY: `expired` requires a pointer to the `timer` of a valid `ConnState`, and
                // this timer is that member.
                timer <- unsafe { Timer::new(Self::expired) },
            }),
            GFP_KERNEL,
        )?;
        endpoint.claim()?;
        Ok(state)
    }

    /// Returns the current state.
    pub(super) fn step(&self) -> Step {
        self.step.load(Relaxed)
    }

    /// Starts the time limit, and has the queue pair's events reported to `id`.
    pub(super) fn begin(&self, id: &Id<Self>) {
        // INVARIANT: The owner of `id` calls `close()` before it drops `id`.
        self.id.store(id.as_raw(), Relaxed);
        // SAFETY: `id` is valid until `close()` calls `clear_id()`: its owner calls `close()`
        // before it drops `id`.
        unsafe { self.endpoint.qp.raw.comm_est.set_id(id.as_raw()) };
        self.timer.set(self.limit);
    }

    /// Ends the connection for its owner, without an event. Sleeps. Afterwards neither the timer
    /// nor the queue pair uses the identifier.
    pub(super) fn close(&self, id: &Id<Self>) {
        {
            let lock = id.lock();
            if self.step() != Step::Ended {
                self.finish(&lock);
            }
        }
        self.timer.cancel();
        self.endpoint.qp.raw.comm_est.clear_id();
    }

    /// Disconnects. The lock must be held.
    pub(super) fn disconnect(&self, id: &Locked<'_>) {
        let step = self.step();
        if step != Step::Established {
            // The peer may have accepted already.
            self.closing.store(true, Relaxed);
        }
        self.disconnect_at(id, step);
    }

    /// Disconnects a connection that is or was in the state `step`.
    fn disconnect_at(&self, id: &Locked<'_>, step: Step) {
        // If this fails, nothing is flushed. `Endpoint::drain()` tries again, and logs an error.
        let _ = self.endpoint.fail();
        // Over iWARP the connection manager would wait for the peer's answer, whose handler needs
        // the lock held here. A connection that is established later is ended then, or with the
        // identifier.
        if step == Step::Established || !self.endpoint.is_iwarp(id) {
            // Fails if it is not connected.
            let _ = id.disconnect();
        }
    }

    /// Ends the connection: no event follows.
    fn finish(&self, id: &Locked<'_>) {
        let step = self.step();
        self.set_step(id, Step::Ended);
        self.disconnect_at(id, step);
    }

    fn set_step(&self, _id: &Locked<'_>, step: Step) {
        self.step.store(step, Relaxed);
    }

    fn end(&self, id: &Locked<'_>, event: Event<'_>) {
        self.finish(id);
        self.events.event(event);
    }

    /// Ends the connection if `taken` is an error.
    fn check(&self, id: &Locked<'_>, taken: Result) {
        if let Err(error) = taken {
            let step = self.step();
            self.end(id, Event::Failed { step, error });
        }
    }

    /// Handles the resolved address: the device is known.
    fn resolved(&self, id: &Locked<'_>) -> Result {
        if !id.is_on(self.endpoint.device()) {
            return Err(EXDEV);
        }
        self.resolve_route(id)
    }

    /// Starts to resolve the route.
    pub(super) fn resolve_route(&self, id: &Locked<'_>) -> Result {
        self.set_step(id, Step::Route);
        id.set_timers(&self.terms)?;
        id.resolve_route(self.limit)
    }

    /// Handles the resolved route: sends the request.
    fn request(&self, id: &Locked<'_>) -> Result {
        self.set_step(id, Step::Request);
        self.endpoint.prepare(id)?;
        match id.connect(&self.endpoint.qp, &self.terms, &self.request) {
            // Over iWARP, the peer has closed its listener before the request was sent. The
            // connection manager reports a rejection with this errno if that happens later.
            Err(error) if error == errno(bindings::ECONNRESET) && self.endpoint.is_iwarp(id) => {
                let rejected = Rejected {
                    reason: error.to_errno(),
                    private_data: &[],
                };
                self.end(id, Event::Rejected(rejected));
                Ok(())
            }
            other => other,
        }
    }

    /// Handles the peer's acceptance.
    fn accepted(&self, id: &Locked<'_>, answer: Established<'_>) -> Result {
        self.endpoint.connect(id, None).inspect_err(|_| {
            // If the rejection is lost, the peer's time limit ends the connection.
            let _ = id.reject(&[]);
        })?;
        // On failure the connection manager notifies the peer.
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
            // A request failed before this side knew of the connection. The peer notices that, or
            // the timer ends the connection.
            true => self.close_after(id, self.limit),
            false => self.check_stall_later(id),
        }
        self.events.event(Event::Established(answer));
    }

    /// Ends the connection after `ms` milliseconds, unless it ends earlier. The lock must be held.
    pub(super) fn close_after(&self, _id: &Locked<'_>, ms: u32) {
        if self.step() == Step::Established && !self.closing.xchg(true, Relaxed) {
            self.timer.set(ms);
        }
    }

    /// Schedules the next check for completions.
    fn check_stall_later(&self, _id: &Locked<'_>) {
        if let Some(ms) = self.stall.interval() {
            self.timer.set(ms);
        }
    }

    /// Handles the end of a time limit: for a state, or for the next check for completions.
    fn timed_out(&self, id: &Locked<'_>) {
        match self.step() {
            Step::Ended => (),
            Step::Established if self.closing.load(Relaxed) => self.end(id, Event::Disconnected),
            Step::Established => {
                // A polled queue may have no reader. Completed requests are no stall.
                if let Some(cq) = self.endpoint.qp.send_cq() {
                    cq.progress();
                }
                let (in_flight, ended) = self.endpoint.qp.raw.sends.progress();
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

    /// Handles the expired timer.
    ///
    /// # Safety
    ///
    /// `timer` must point to the member of a valid [`ConnState`].
    unsafe fn expired(timer: *const Timer) {
        // SAFETY: `timer` is the member of a valid `ConnState` by the function's contract.
        let this = unsafe { &*container_of!(timer, Self, timer) };
        // SAFETY: `id` is valid by the type invariant: the timer was set by `begin()`, and
        // `close()` waits for this function.
        let lock = unsafe { Locked::lock(this.id.load(Relaxed)) };
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
            // The event was on its way when the connection ended. The peer could not be notified
            // then.
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
            // A neighbour has a new address: packets may still arrive, or requests fail.
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
            // The handler does not destroy the identifier, because its owner may do so at the same
            // time.
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
            // `TIMEWAIT_EXIT` permits to reuse the queue pair. This crate does not reuse queue
            // pairs.
            _ => (),
        }
        Ok(())
    }
}

/// Returns the error of an event with this status.
pub(super) fn error_of(status: c_int) -> Error {
    Error::from_errno(if status < 0 { status } else { EIO.to_errno() })
}
