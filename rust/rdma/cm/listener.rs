// SPDX-License-Identifier: GPL-2.0

//! Listening for peers.
//!
//! MERGED cm/incoming.rs
//! Requests of peers that want to connect.

use kernel::{
    bindings::task_struct,
    prelude::*,
    sync::{
        aref::ARef,
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
        private_data,
        ConnParam, //
        MAX_ACCEPT_DATA,
    },
    connection::{
        new_state,
        Connection,
        Proposal, //
    },
    endpoint::Endpoint,
    event::{
        Events,
        Step, //
    },
    id::{
        Id,
        Locked,
        Target, //
    }, //
};
use crate::{
    device::Device,
    errno, //
};

/// Who wants to know of peers that want to connect.
pub trait Requests: Send + Sync + 'static {
    /// A peer wants to connect.
    ///
    /// In process context, as for [`Events::event`](super::Events::event): it may sleep for a lock
    /// or for memory, but must not wait, nor accept the request here; it may drop or reject it, and
    /// do nothing else that is forbidden there. Requests to a listener of any address can come
    /// several at once.
    fn request(&self, incoming: Incoming);

    /// The device of a listener's address goes. The listener must be dropped soon: the device's
    /// removal waits. Listeners of any address go on. In a context as above.
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
                // SAFETY: `id` is the request's, with its event; an error is returned to the
                // connection manager.
                unsafe { Incoming::come(id, event, tell) }
            }
            b::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
                self.requests.device_removal();
                Ok(())
            }
            // There is nothing else that concerns a listener.
            _ => Ok(()),
        }
    }
}

/// Listens for peers that want to connect. Dropping it ends that; it sleeps until no request is
/// being told any more, so must not be done there. Requests that have been told are not affected.
///
/// # Examples
///
/// ```ignore
/// impl Requests for Door {
///     fn request(&self, incoming: Incoming) {
///         // Accepted elsewhere, since that must not be done here.
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
    /// Listens at an address, on the device that has it, or, at the unspecified one, on all devices
    /// that there are and come. With port 0 it gets a free one. May sleep.
    ///
    /// `backlog` limits the requests that wait to be told; over InfiniBand and RoCE there is no
    /// such limit.
    ///
    /// # Errors
    ///
    /// - `EADDRINUSE`
    /// - `ENODEV` if no device has the address.
    /// - What else the connection manager says.
    pub fn new(address: SocketAddr, backlog: u32, requests: Arc<dyn Requests>) -> Result<Self> {
        let target = Arc::new(Listening { requests }, GFP_KERNEL)?;
        let id = Id::new(target.clone())?;
        id.bind(address)
            .map_err(|error| why_unbound(error, address, target))?;
        id.listen(backlog)?;
        Ok(Self { id })
    }

    /// The address, with the port that it got. Any context.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.local()
    }

    /// The device that has the address; none for the unspecified one. Any context.
    pub fn device(&self) -> Option<&Device> {
        self.id.device()
    }
}

/// Returns why a listener can't be bound to an address, by what the connection manager says. May sleep.
///
/// `cma_check_port()` says `EADDRNOTAVAIL` of a port that is in use, if either of both addresses is the
/// unspecified one. Then the address is available with another port.
fn why_unbound(error: Error, mut address: SocketAddr, target: Arc<Listening>) -> Error {
    if error != errno::eaddrnotavail() || address.port() == 0 {
        return error;
    }
    address.set_port(0);
    match Id::new(target).and_then(|id| id.bind(address)) {
        Ok(()) => errno::eaddrinuse(),
        Err(_) => error,
    }
}

/// A request that has not been answered, as its events see it.
struct Pending {
    /// The task that is being told of it.
    handler_task: Atomic<*mut task_struct>,
    /// It was dropped by that task.
    dropped: Atomic<bool>,
    /// Whoever asked has given up, or the device goes.
    gone: Atomic<bool>,
}

impl Target for Pending {
    fn event(&self, _id: &Locked<'_>, _event: &b::rdma_cm_event) -> Result {
        // Whatever it is, it is no answer to anything.
        self.gone.store(true, Relaxed);
        Ok(())
    }
}

/// A peer's request to connect, to be accepted or rejected.
///
/// Dropping it rejects it, without private data; that may be done where it is told as well. It must
/// be dropped when its device goes, as a connection.
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
    // Taken when it is answered or dropped.
    id: Option<Id<Pending>>,
    device: ARef<Device>,
    private_data: KVec<u8>,
    terms: ConnParam,
}

impl Incoming {
    /// Has `tell` told of a request whose identifier is `id`. On an error the connection manager is
    /// to destroy that.
    ///
    /// # Safety
    ///
    /// `id` must be the one of a request that has just come, nobody's yet, and `event` the event
    /// that came with it; and an error must be given to the connection manager.
    pub(super) unsafe fn come(
        id: &Locked<'_>,
        event: &b::rdma_cm_event,
        tell: impl FnOnce(Self),
    ) -> Result {
        // SAFETY: This is the member that goes with this event.
        let conn = unsafe { event.param.conn.as_ref() };
        // SAFETY: The data, if any, are there as long as the event.
        let came = unsafe { private_data(conn.private_data, conn.private_data_len) };
        let mut private_data = KVec::with_capacity(came.len(), GFP_KERNEL)?;
        private_data.extend_from_slice(came, GFP_KERNEL)?;
        let pending = Pending {
            handler_task: Atomic::new(current()),
            dropped: Atomic::new(false),
            gone: Atomic::new(false),
        };
        let pending = Arc::new(pending, GFP_KERNEL)?;
        // SAFETY: It is nobody's yet, and is forgotten below if it is destroyed.
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
            return Err(errno::econnrefused());
        }
        Ok(())
    }

    /// The device that it came by.
    pub fn device(&self) -> &ARef<Device> {
        &self.device
    }

    /// The port that it came by.
    pub fn port(&self) -> u32 {
        self.id.as_ref().map_or(0, Id::port)
    }

    /// The address that it came to.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.as_ref().and_then(Id::local)
    }

    /// The peer's address.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.id.as_ref().and_then(Id::peer)
    }

    /// What the peer says, padded.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// What the peer proposes, seen from this side: how many of its reads it would like served, how
    /// many of this side's it serves. The timers are not told.
    pub fn terms(&self) -> &ConnParam {
        &self.terms
    }

    /// Accepts it for an endpoint, by the terms given; fewer reads at once if the peer proposes
    /// that. What becomes of it `events` are told. Sleeps. Not to be called where the request is
    /// told.
    ///
    /// # Errors
    ///
    /// After one the endpoint is of no more use, unless it is one of the first three.
    ///
    /// - `EBUSY` if the endpoint is or was another connection's.
    /// - `EINVAL` if there are too much private data.
    /// - `EXDEV` if the endpoint is of another device.
    /// - ECONNRESET if the peer has given up.
    /// - What the connection manager or the driver says.
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
        let state = new_state(endpoint, &agreed, MAX_ACCEPT_DATA, events, Step::Request)?;
        let id = self.id.take().ok_or(EINVAL)?;
        let pending = id.target().clone();
        Connection::with(id, state, |state, id| {
            if pending.gone.load(Relaxed) {
                return Err(errno::econnreset());
            }
            id.set_timers(state.terms())?;
            state.endpoint().connect(id, Some(state.terms()))?;
            id.accept(state.endpoint().qp(), state.terms(), agreed.private_data)
        })
    }

    /// Rejects it, with private data. Sleeps. May be called where the request is told.
    ///
    /// # Errors
    ///
    /// The peer is refused even so.
    ///
    /// - `EINVAL` if there are too much private data.
    /// - What the connection manager says.
    pub fn reject(self, private_data: &[u8]) -> Result {
        let id = self.id.as_ref().ok_or(EINVAL)?;
        if id.target().is_in_handler() {
            // SAFETY: The connection manager holds the lock while it tells of the request.
            unsafe { Locked::new(id.as_raw()) }.reject(private_data)
        } else {
            id.lock().reject(private_data)
        }
    }
}

impl Pending {
    /// Whether this task is being told of it.
    fn is_in_handler(&self) -> bool {
        self.handler_task.load(Relaxed) == current()
    }
}

/// This task.
fn current() -> *mut task_struct {
    kernel::current!().as_ptr()
}

impl Drop for Incoming {
    fn drop(&mut self) {
        match self.id.take() {
            // The connection manager destroys it when it has been told that.
            Some(id) if id.target().is_in_handler() => {
                id.target().dropped.store(true, Relaxed);
                id.forget();
            }
            id => drop(id),
        }
    }
}
