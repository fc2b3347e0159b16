// SPDX-License-Identifier: GPL-2.0

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

use core::ptr::null_mut;

use rdma_bindings as b;

use super::{
    alarm::Alarm,
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
        Target, //
    },
    locked::{
        Lock,
        Locked, //
    },
    patience::Patience,
    terms::Terms, //
};

/// A connection, as its events see it.
///
/// # Invariants
///
/// `step` changes with the identifier's lock only. `id` is there from when the alarm has been set
/// until it has been called off.
#[pin_data]
pub(super) struct Line {
    endpoint: Arc<Endpoint>,
    terms: Terms,
    /// What is said in the request.
    request: KVec<u8>,
    /// How long to try, in milliseconds.
    limit: u32,
    patience: Patience,
    events: Arc<dyn Events>,
    step: Atomic<u32>,
    /// It is over when the alarm rings next, or when it is established.
    doomed: Atomic<bool>,
    id: Atomic<*mut b::rdma_cm_id>,
    #[pin]
    alarm: Alarm,
}

impl Line {
    /// A connection that is at this step. May sleep.
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        terms: Terms,
        request: KVec<u8>,
        (limit, patience): (u32, Patience),
        events: Arc<dyn Events>,
        step: Step,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                endpoint,
                terms,
                request,
                limit,
                patience,
                events,
                // CAST: The enum is `repr(u32)`.
                step: Atomic::new(step as u32),
                doomed: Atomic::new(false),
                id: Atomic::new(null_mut()),
                // SAFETY: It is called with a pointer to the member of a line.
                alarm <- unsafe { Alarm::new(Self::rings) },
            }),
            GFP_KERNEL,
        )
    }

    /// Its endpoint.
    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// By what it is, or is to be.
    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Where it is.
    pub(super) fn step(&self) -> Step {
        Step::from_raw(self.step.load(Relaxed))
    }

    /// Begins to measure the time, and to hear what the queue pair tells.
    pub(super) fn begin(&self, id: &Id<Self>) {
        // INVARIANT: Who has the identifier calls the alarm off before it goes.
        self.id.store(id.as_raw(), Relaxed);
        // SAFETY: As for the alarm.
        unsafe { self.endpoint.qp().herald().tell(id.as_raw()) };
        self.alarm.set(self.limit);
    }

    /// Ends for its owner, who is told nothing more. Sleeps. Afterwards neither the alarm nor the
    /// queue pair has the identifier.
    pub(super) fn leave(&self, id: &Id<Self>) {
        {
            let lock = id.lock();
            if self.step() != Step::Ended {
                self.finish(&lock);
            }
        }
        self.alarm.call_off();
        self.endpoint.qp().herald().silence();
    }

    /// Disconnects, if that has any use. The lock must be held.
    pub(super) fn disconnect(&self, id: &Locked<'_>) {
        let step = self.step();
        if step != Step::Established {
            // The peer may have agreed already.
            self.doomed.store(true, Relaxed);
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
        self.go(id, Step::Ended);
        self.disconnect_at(id, step);
    }

    fn go(&self, _id: &Locked<'_>, step: Step) {
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
        self.go(id, Step::Route);
        id.set_timers(&self.terms)?;
        id.resolve_route(self.limit)
    }

    /// The way is known.
    fn request(&self, id: &Locked<'_>) -> Result {
        self.go(id, Step::Request);
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
        self.go(id, Step::Established);
        if self.doomed.load(Relaxed) {
            return self.end(id, Event::Disconnected);
        }
        self.endpoint.opens();
        match self.endpoint.is_broken() {
            // By what came before it was known to be there: the peer finds out, or not.
            true => self.doom(id, self.limit),
            false => self.look_again(id),
        }
        self.events.event(Event::Established(answer));
    }

    /// Ends it in so many milliseconds, unless it has ended by then. The lock must be held.
    pub(super) fn doom(&self, _id: &Locked<'_>, ms: u32) {
        if self.step() == Step::Established && !self.doomed.xchg(true, Relaxed) {
            self.alarm.set(ms);
        }
    }

    /// Looks later whether requests get on.
    fn look_again(&self, _id: &Locked<'_>) {
        if let Some(ms) = self.patience.next_look() {
            self.alarm.set(ms);
        }
    }

    /// The time is over: for a step, or to look whether requests get on.
    fn late(&self, id: &Locked<'_>) {
        match self.step() {
            Step::Ended => (),
            Step::Established if self.doomed.load(Relaxed) => self.end(id, Event::Disconnected),
            Step::Established => {
                let (under_way, ended) = self.endpoint.qp().sends().progress();
                match self.patience.is_over(under_way, ended) {
                    true => self.end(id, Event::Stalled),
                    false => self.look_again(id),
                }
            }
            step => {
                let error = ETIMEDOUT;
                self.end(id, Event::Failed { step, error });
            }
        }
    }

    /// The alarm rings.
    ///
    /// # Safety
    ///
    /// `alarm` must be the member of a line that is there.
    unsafe fn rings(alarm: *const Alarm) {
        // SAFETY: By the requirements of this function.
        let this = unsafe { &*container_of!(alarm, Self, alarm) };
        // SAFETY: By the type invariant the identifier is there, as the alarm has been set and is
        // not called off before this returns.
        let lock = unsafe { Lock::take(this.id.load(Relaxed)) };
        this.late(&lock);
    }
}

impl Target for Line {
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
