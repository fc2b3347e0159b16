// SPDX-License-Identifier: GPL-2.0

//! Connection management between providers and the core: requests, events and passive endpoints.
//!
//! Lock order: the lock of [`ConnEvents`] and [`ConnRequests`] is before that of an event queue. It is taken
//! with interrupts on, in process context.

use crate::prelude::*;
use core::any::Any;
use kernel::str::CString;

/// The options of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The connect timeout in milliseconds; not 0.
    pub connect: u32,
    /// The stall timeout in milliseconds, or 0 for none. If no pending transfer ends for that time, the provider shuts
    /// down the connection.
    pub stall: u32,
    /// The minimum delay in microseconds until the peer repeats a message that found no receive.
    pub rnr_delay: u32,
    /// The differentiated services code point of packets to the peer: 0 to 63.
    pub dscp: Option<u8>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: 30_000,
            stall: 60_000,
            rnr_delay: 640,
            dscp: None,
        }
    }
}

/// A connection request of a peer. Dropping it rejects the request without private data, and may sleep.
pub struct ConnRequest {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The local address that received the request.
    pub local: SocketAddr,
    /// The peer's private data.
    pub data: KVec<u8>,
    /// The name of the domain for the accepting endpoint. `None` means the domain of the passive endpoint's info.
    pub domain: Option<CString>,
    /// The provider's part. Dropping it rejects the request, unless the provider has answered the request.
    pub part: KBox<dyn Any + Send + Sync>,
}

impl ConnRequest {
    /// Returns the provider's part as the type of one provider.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the request is of another provider.
    pub fn own<T: Any>(&mut self) -> Result<&mut T, Refusal> {
        let foreign = Refusal::new(Errno::EINVAL, c"another provider's request");
        self.part.downcast_mut().ok_or(foreign)
    }
}

/// The handler of an endpoint's connection events. The core implements it.
pub trait ConnHandler: Send + Sync {
    /// Handles an established connection. `data` is the private data of the peer.
    fn connected(&self, data: &[u8]);
    /// Handles the end of a connection.
    fn shut_down(&self);
    /// Handles the failure of a connection attempt.
    fn failed(&self, how: ConnFailed, data: &[u8]);
}

/// The error of a failed connection attempt.
#[derive(Clone, Copy, Debug)]
pub struct ConnFailed {
    /// The errno for the consumer.
    pub errno: Errno,
    /// The provider's error number.
    pub prov_errno: i32,
}

/// Passes the connection events of one endpoint to its handler, while the endpoint is open.
#[pin_data]
pub struct ConnEvents {
    #[pin]
    told: Mutex<Option<KBox<dyn ConnHandler>>>,
}

impl ConnEvents {
    /// Creates events without a handler.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            told <- new_mutex!(None),
        })
    }

    /// Sets the handler, or removes it. The old handler doesn't run after the return. May sleep for a short time.
    pub(crate) fn set(&self, told: Option<KBox<dyn ConnHandler>>) {
        let old = core::mem::replace(&mut *self.told.lock(), told);
        drop(old);
    }

    fn tell(&self, tell: impl FnOnce(&dyn ConnHandler)) {
        if let Some(told) = &*self.told.lock() {
            tell(&**told);
        }
    }

    /// Reports that the endpoint is connected. `data` is the private data of the peer. May sleep for a short time.
    pub fn connected(&self, data: &[u8]) {
        self.tell(|told| told.connected(data));
    }

    /// Reports the end of the connection. May sleep for a short time.
    pub fn shut_down(&self) {
        self.tell(|told| told.shut_down());
    }

    /// Reports that the connection attempt failed. `data` is the private data of a peer that rejected the request. May
    /// sleep for a short time.
    pub fn failed(&self, how: ConnFailed, data: &[u8]) {
        self.tell(|told| told.failed(how, data));
    }
}

/// The core's handler of connection requests to a passive endpoint. It returns a request that the core doesn't take.
type ConnRequestHandler = dyn Fn(ConnRequest) -> Option<ConnRequest> + Send + Sync;

/// Passes the connection requests of one passive endpoint to its handler, while the endpoint is open.
///
/// # Examples
///
/// ```ignore
/// // A provider that receives a request. Dropping a request that the core returns rejects it.
/// drop(incoming.request(request));
/// ```
#[pin_data]
pub struct ConnRequests {
    #[pin]
    asked: Mutex<Option<KBox<ConnRequestHandler>>>,
}

impl ConnRequests {
    /// Passes requests to `asked` until [`stop`](Self::stop).
    pub(crate) fn new(asked: KBox<ConnRequestHandler>) -> impl PinInit<Self> {
        pin_init!(Self {
            asked <- new_mutex!(Some(asked)),
        })
    }

    /// Removes the handler, which doesn't run after the return. May sleep for a short time.
    pub(crate) fn stop(&self) {
        let asked = self.asked.lock().take();
        drop(asked);
    }

    /// Reports a request. Returns the request without its data if the core doesn't take it, so that
    /// the provider rejects it. May sleep for a short time.
    pub fn request(&self, request: ConnRequest) -> Option<ConnRequest> {
        match &*self.asked.lock() {
            Some(asked) => asked(request),
            None => Some(request),
        }
    }
}

/// A passive endpoint. The core opens it, calls `listen` at most once, then drops it. After the drop no request
/// arrives. Dropping it sleeps.
pub trait PepOps: Send + Sync {
    /// Listens at an address, with at most `backlog` unanswered requests. Returns the address with its port. May sleep.
    ///
    /// # Errors
    ///
    /// - `EADDRINUSE`: another endpoint listens at the address.
    /// - `EADDRNOTAVAIL`: this machine doesn't have the address.
    fn listen(
        &self,
        address: SocketAddr,
        backlog: u32,
        incoming: Arc<ConnRequests>,
    ) -> Result<SocketAddr, Refusal>;

    /// Rejects a request. The peer gets `data`. The request ends also after an error. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: the peer is not notified, and may repeat the request.
    fn reject(&self, request: ConnRequest, data: &[u8]) -> Result<(), Refusal>;
}
