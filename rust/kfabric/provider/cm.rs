// SPDX-License-Identifier: GPL-2.0

//! What a provider tells about connections.
//!
//! Lock order: the lock of [`Events`] and [`Incoming`] is before that of an event queue. It is taken
//! with interrupts on, in process context.
//!
//! Passive endpoints of a provider.

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use core::{
    any::Any,
    net::SocketAddr, //
};
use kernel::{
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// How long things may take on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long connecting may take, in milliseconds; not 0.
    pub connect: u32,
    /// How long transfers to the peer may be under way without one of them ending, in milliseconds;
    /// 0 is for ever. Then the connection is taken down.
    pub stall: u32,
    /// How long the peer waits until it repeats a message for which there was no receive, in
    /// microseconds; or somewhat longer.
    pub rnr_delay: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: 30_000,
            stall: 60_000,
            rnr_delay: 640,
        }
    }
}

/// A peer's request for a connection, of a provider: to be accepted by an endpoint, or rejected.
/// Dropped, it is rejected without a word. Dropping it may sleep.
pub trait ConnRequest: Send + Sync {
    /// Whose it is.
    fn peer(&self) -> SocketAddr;

    /// The address that it came to.
    fn local(&self) -> SocketAddr;

    /// What the peer has sent with it.
    fn data(&self) -> &[u8];

    /// The name of the domain that endpoints answering it are to be opened in, unless it is that which
    /// the passive endpoint was asked for with.
    fn domain(&self) -> Option<&CStr>;

    /// `self` as [`Any`], for the provider that gets it back.
    fn as_any(&mut self) -> &mut dyn Any;
}

impl dyn ConnRequest {
    /// The request, if it is of this type, as those of one provider are.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is another provider's.
    pub fn own<T: ConnRequest + 'static>(&mut self) -> Result<&mut T, Refusal> {
        let foreign = Refusal::new(Errno::EINVAL, c"another provider's request");
        self.as_any().downcast_mut().ok_or(foreign)
    }
}

/// A receiver of what becomes of an endpoint's connection. The core implements it.
pub trait ConnHandler: Send + Sync {
    /// It is connected; the peer has sent this with its answer.
    fn connected(&self, data: &[u8]);
    /// The connection has ended.
    fn shut_down(&self);
    /// There won't be one.
    fn failed(&self, how: ConnFailed, data: &[u8]);
}

/// Why an endpoint can't be connected.
#[derive(Clone, Copy, Debug)]
pub struct ConnFailed {
    /// What the consumer gets as `err`.
    pub errno: Errno,
    /// The provider's own number for it.
    pub prov_errno: i32,
}

/// Tells what becomes of the connection of one endpoint, as long as the endpoint is open.
#[pin_data]
pub struct Events {
    #[pin]
    told: Mutex<Option<KBox<dyn ConnHandler>>>,
}

impl Events {
    /// Tells nobody yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            told <- new_mutex!(None),
        })
    }

    /// Tells somebody from now on, or nobody. When it returns, nobody else is being told anything. May
    /// sleep, but not for long.
    pub(crate) fn set(&self, told: Option<KBox<dyn ConnHandler>>) {
        let old = core::mem::replace(&mut *self.told.lock(), told);
        drop(old);
    }

    fn tell(&self, tell: impl FnOnce(&dyn ConnHandler)) {
        if let Some(told) = &*self.told.lock() {
            tell(&**told);
        }
    }

    /// The endpoint is connected; `data` is what the peer has sent with its answer. May sleep, but not
    /// for long.
    pub fn connected(&self, data: &[u8]) {
        self.tell(|told| told.connected(data));
    }

    /// The connection has ended, whoever has ended it. May sleep, but not for long.
    pub fn shut_down(&self) {
        self.tell(|told| told.shut_down());
    }

    /// There won't be a connection; `data` is what the peer has sent if it was the one who refused.
    /// May sleep, but not for long.
    pub fn failed(&self, how: ConnFailed, data: &[u8]) {
        self.tell(|told| told.failed(how, data));
    }
}

/// Who is told of requests that come to a passive endpoint; the core's.
pub(crate) trait ConnRequestHandler: Send + Sync {
    /// Takes a request, or gives it back if there are too many.
    fn asked(&self, request: KBox<dyn ConnRequest>) -> Result<(), KBox<dyn ConnRequest>>;
}

/// Tells of requests that come to one passive endpoint, as long as it is open.
///
/// # Examples
///
/// ```ignore
/// // A provider that hears of a request. If nobody takes it, it is rejected by being dropped.
/// drop(incoming.request(KBox::new(MyRequest::new(from)?, GFP_KERNEL)?));
/// ```
#[pin_data]
pub struct Incoming {
    #[pin]
    asked: Mutex<Option<KBox<dyn ConnRequestHandler>>>,
}

impl Incoming {
    /// Tells `asked`, until [`stop`](Self::stop).
    pub(crate) fn new(asked: KBox<dyn ConnRequestHandler>) -> impl PinInit<Self> {
        pin_init!(Self {
            asked <- new_mutex!(Some(asked)),
        })
    }

    /// Tells nobody any more. When it returns, nobody is being told anything. May sleep, but not for
    /// long.
    pub(crate) fn stop(&self) {
        let asked = self.asked.lock().take();
        drop(asked);
    }

    /// There is a request. Gives it back if nobody takes it, to be rejected. May sleep, but not for
    /// long.
    pub fn request(&self, request: KBox<dyn ConnRequest>) -> Result<(), KBox<dyn ConnRequest>> {
        match &*self.asked.lock() {
            Some(asked) => asked.asked(request),
            None => Err(request),
        }
    }
}

/// A passive endpoint: created, made to listen once, then dropped, whereupon nobody is told of a
/// request any more. Dropping it sleeps.
pub trait Pep: Send + Sync {
    /// Begins to listen at an address, which gets a port if it has none, and returns it; at most
    /// `backlog` requests wait for an answer. May sleep.
    ///
    /// # Errors
    ///
    /// - `EADDRINUSE`: somebody else listens there.
    /// - `EADDRNOTAVAIL`: that is no address of this machine.
    fn listen(
        &self,
        address: SocketAddr,
        backlog: u32,
        incoming: Arc<Incoming>,
    ) -> Result<SocketAddr, Refusal>;

    /// Rejects a request; the peer gets `data`. May sleep.
    ///
    /// # Errors
    ///
    /// It is over even so.
    ///
    /// - `ENOMEM`: the peer can't be told, and may ask again.
    fn reject(&self, request: KBox<dyn ConnRequest>, data: &[u8]) -> Result<(), Refusal>;
}
