// SPDX-License-Identifier: GPL-2.0

//! Listeners, and the connection requests of peers.

use super::*;
use kernel::bindings::task_struct;

/// A handler for the connection requests of peers.
pub trait Requests: Send + Sync + 'static {
    /// Handles a connection request.
    ///
    /// # Context
    ///
    /// As for [`Events::event`]: process context, may sleep for a lock or for memory. The handler
    /// must not wait, nor accept the request. It may drop or reject the request. The requests to a
    /// listener without an address may arrive concurrently.
    fn request(&self, incoming: Incoming);

    /// Handles the removal of the listener's device. The owner must drop the listener soon, because
    /// the removal waits. Listeners without an address go on. Same context as
    /// [`Requests::request`].
    fn device_removal(&self) {}
}

struct Listening {
    requests: Arc<dyn Requests>,
}

impl Target for Listening {
    fn event(&self, id: &Locked<'_>, event: &b::rdma_cm_event) -> Result {
        match event.event {
            b::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST => {
                let tell = |incoming| self.requests.request(incoming);
                // SAFETY: `id` is the new identifier of the request and has no owner, and `event`
                // is its event. The connection manager gets the error.
                unsafe { Incoming::come(id, event, tell) }
            }
            b::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
                self.requests.device_removal();
                Ok(())
            }
            // Other events do not concern a listener.
            _ => Ok(()),
        }
    }
}

/// A listener for connection requests. Dropping it stops it. The drop sleeps until running handlers
/// have returned, so it must not be called in a handler. Requests that were handed out remain
/// valid.
///
/// # Examples
///
/// ```ignore
/// impl Requests for Door {
///     fn request(&self, incoming: Incoming) {
///         // This handler must not accept, so a worker does.
///         self.waiting.lock().push(incoming, GFP_KERNEL).ok();
///     }
/// }
///
/// let listener = Listener::new(address, 16, door)?;
/// pr_info!("listening at {:?}\n", listener.local());
/// ```
pub struct Listener {
    id: Id<Listening>,
}

impl Listener {
    /// Listens at an address on the device that has it. The unspecified address listens on all
    /// present and future devices. Port 0 selects a free port. May sleep.
    ///
    /// `backlog` limits the requests that wait for a handler. It has no effect over InfiniBand and
    /// RoCE.
    ///
    /// # Errors
    ///
    /// - `EADDRINUSE` if the port is in use.
    /// - `ENODEV` if no device has the address.
    /// - Other errors of the connection manager.
    pub fn new(address: SocketAddr, backlog: u32, requests: Arc<dyn Requests>) -> Result<Self> {
        let target = Arc::new(Listening { requests }, GFP_KERNEL)?;
        let id = Id::new(target.clone())?;
        id.bind(address)
            .map_err(|error| why_unbound(error, address, target))?;
        id.listen(backlog)?;
        Ok(Self { id })
    }

    /// Returns the address with its port. Any context.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.local()
    }

    /// Returns the device of the address, or none for the unspecified address. Any context.
    pub fn device(&self) -> Option<&Device> {
        self.id.device()
    }
}

/// Returns the error for a listener whose address could not be bound. May sleep.
///
/// `cma_check_port()` returns `EADDRNOTAVAIL` for a port in use if either address is the
/// unspecified one. In that case the address can be bound to another port.
fn why_unbound(error: Error, mut address: SocketAddr, target: Arc<Listening>) -> Error {
    if error != errno(bindings::EADDRNOTAVAIL) || address.port() == 0 {
        return error;
    }
    address.set_port(0);
    match Id::new(target).and_then(|id| id.bind(address)) {
        Ok(()) => errno(bindings::EADDRINUSE),
        Err(_) => error,
    }
}

/// An unanswered request, as its event handler uses it.
struct Pending {
    /// The task that runs the handler of the request.
    handler_task: Atomic<*mut task_struct>,
    /// True if that task dropped the request.
    dropped: Atomic<bool>,
    /// True if the peer has given up, or if the device is being removed.
    gone: Atomic<bool>,
}

impl Pending {
    /// Checks whether this task runs the handler of the request.
    fn is_in_handler(&self) -> bool {
        self.handler_task.load(Relaxed) == kernel::current!().as_ptr()
    }
}

impl Target for Pending {
    fn event(&self, _id: &Locked<'_>, _event: &b::rdma_cm_event) -> Result {
        // Every event ends the request.
        self.gone.store(true, Relaxed);
        Ok(())
    }
}

/// A connection request of a peer.
///
/// Dropping it rejects the request without private data, also in the handler. The owner must drop
/// it when the device is removed.
///
/// # Examples
///
/// ```ignore
/// match greeting_of(incoming.private_data()) {
///     Some(_) => incoming.accept(&endpoint, &proposal, events)?,
///     None => return incoming.reject(b"who are you?"),
/// }
/// ```
pub struct Incoming {
    // [`None`] once it is answered or dropped.
    id: Option<Id<Pending>>,
    device: ARef<Device>,
    private_data: KVec<u8>,
    terms: ConnParam,
}

impl Incoming {
    /// Creates a request from the new identifier `id`, and calls `tell` with it. On an error the
    /// connection manager must destroy `id`.
    ///
    /// # Safety
    ///
    /// - `id` must be the identifier of a new request without an owner, and `event` its event.
    /// - The caller must return an error to the connection manager.
    pub(super) unsafe fn come(
        id: &Locked<'_>,
        event: &b::rdma_cm_event,
        tell: impl FnOnce(Self),
    ) -> Result {
        // SAFETY: `conn` is the member that a connection request sets.
        let conn = unsafe { event.param.conn.as_ref() };
        // SAFETY: `private_data` is null or points to `private_data_len` bytes that are valid as
        // long as `event`.
        let came = unsafe { private_data(conn.private_data, conn.private_data_len) };
        let mut private_data = KVec::with_capacity(came.len(), GFP_KERNEL)?;
        private_data.extend_from_slice(came, GFP_KERNEL)?;
        let pending = Pending {
            handler_task: Atomic::new(kernel::current!().as_ptr()),
            dropped: Atomic::new(false),
            gone: Atomic::new(false),
        };
        let pending = Arc::new(pending, GFP_KERNEL)?;
        // SAFETY: `id` has no owner by the function's contract. If an error is returned, it is
        // forgotten here or by the drop in the handler.
        let id = unsafe { Id::adopt(id, pending.clone()) };
        let Some(device) = id.device().map(ARef::from) else {
            id.forget();
            return Err(ENODEV);
        };
        tell(Self {
            id: Some(id),
            device,
            private_data,
            terms: ConnParam {
                responder_resources: conn.responder_resources,
                initiator_depth: conn.initiator_depth,
                retry_count: conn.retry_count,
                rnr_retry_count: conn.rnr_retry_count,
                ..ConnParam::default()
            },
        });
        pending.handler_task.store(null_mut(), Relaxed);
        if pending.dropped.load(Relaxed) {
            return Err(errno(bindings::ECONNREFUSED));
        }
        Ok(())
    }

    /// Returns the device that received the request.
    pub fn device(&self) -> &ARef<Device> {
        &self.device
    }

    /// Returns the port that received the request.
    pub fn port(&self) -> u32 {
        self.id.as_ref().map_or(0, Id::port)
    }

    /// Returns the address that the peer requested.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.as_ref().and_then(Id::local)
    }

    /// Returns the address of the peer.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.id.as_ref().and_then(Id::peer)
    }

    /// Returns the private data of the peer, padded.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// Returns the parameters that the peer proposes, from the point of view of this side. They
    /// contain no timers.
    pub fn terms(&self) -> &ConnParam {
        &self.terms
    }

    /// Accepts the request for an endpoint with the parameters of `proposal`, reduced to those of
    /// the peer. `events` report the result. Sleeps. Must not be called in the handler of the
    /// request.
    ///
    /// # Errors
    ///
    /// After an error other than the first three the endpoint is unusable.
    ///
    /// - `EBUSY` if the endpoint belongs or belonged to another connection.
    /// - `EINVAL` if the private data are too long.
    /// - `EXDEV` if the endpoint is on another device.
    /// - ECONNRESET if the peer has given up.
    /// - The error of the connection manager or of the driver.
    pub fn accept(
        mut self,
        endpoint: &Arc<Endpoint>,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Connection> {
        if !self.device.is_same(endpoint.device()) {
            return Err(EXDEV);
        }
        let agreed = Proposal {
            terms: proposal
                .terms
                .at_most(self.terms.responder_resources, self.terms.initiator_depth),
            ..*proposal
        };
        let state = ConnState::new(endpoint, &agreed, MAX_ACCEPT_DATA, events, Step::Request)?;
        let id = self.id.take().ok_or(EINVAL)?;
        let pending = id.target().clone();
        Connection::with(id, state, |state, id| {
            if pending.gone.load(Relaxed) {
                return Err(errno(bindings::ECONNRESET));
            }
            id.set_timers(&state.terms)?;
            state.endpoint.connect(id, Some(&state.terms))?;
            id.accept(&state.endpoint.qp, &state.terms, agreed.private_data)
        })
    }

    /// Rejects the request with private data. Sleeps. May be called in the handler of the request.
    ///
    /// # Errors
    ///
    /// The request is rejected in any case.
    ///
    /// - `EINVAL` if the private data are too long.
    /// - The error of the connection manager.
    pub fn reject(self, private_data: &[u8]) -> Result {
        let id = self.id.as_ref().ok_or(EINVAL)?;
        if id.target().is_in_handler() {
            // SAFETY: `id` is valid as long as `self`. This task runs the handler, for which the
            // connection manager holds the lock.
            unsafe { Locked::new(id.as_raw()) }.reject(private_data)
        } else {
            id.lock().reject(private_data)
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        match self.id.take() {
            // The handler returns an error, after which the connection manager destroys the
            // identifier.
            Some(id) if id.target().is_in_handler() => {
                id.target().dropped.store(true, Relaxed);
                id.forget();
            }
            id => drop(id),
        }
    }
}
