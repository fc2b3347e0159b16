// SPDX-License-Identifier: GPL-2.0

//! Passive endpoints, and the connection requests that they get.
//!
//! An address is a name here: any address may be used, but each port has one listener only. A
//! listener that asks for port 0 gets a port.
//!
//! Lock order: `LISTENERS` is a leaf.

use crate::*;
use kfabric::provider::{
    self,
    cm::ConnRequests, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static LISTENERS: Mutex<Listeners> = Listeners::NONE;
}

/// All listeners.
struct Listeners {
    all: KVec<Listener>,
    /// The port that was last chosen for a listener.
    last: u16,
}

impl Listeners {
    const NONE: Self = Self {
        all: KVec::new(),
        last: FIRST_PORT,
    };
}

/// The first port that is chosen for a listener.
const FIRST_PORT: u16 = 49152;

/// Initializes the list.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: The caller promises that this is the only call, and the first use of the lock.
    unsafe { LISTENERS.init() };
}

/// Frees the list. To be called last; a static is never dropped.
pub(crate) fn exit() {
    let listeners = mem::replace(&mut *LISTENERS.lock(), Listeners::NONE);
    drop(listeners);
}

/// A listener and its address.
struct Listener {
    address: SocketAddr,
    incoming: Arc<ConnRequests>,
}

/// Checks whether two addresses name the same listener.
fn meets(listener: &SocketAddr, asked: &SocketAddr) -> bool {
    let any = listener.ip().is_unspecified() || asked.ip().is_unspecified();
    listener.port() == asked.port() && (any || listener.ip() == asked.ip())
}

impl Listeners {
    /// Returns a port without a listener.
    fn free_port(&mut self) -> Result<u16, Refusal> {
        for _ in FIRST_PORT..=u16::MAX {
            self.last = self.last.checked_add(1).unwrap_or(FIRST_PORT);
            if self
                .all
                .iter()
                .all(|listener| listener.address.port() != self.last)
            {
                return Ok(self.last);
            }
        }
        Err(Refusal::new(Errno::EADDRINUSE, c"all ports are in use"))
    }
}

/// Returns the listener at an address, if there is one. May sleep.
pub(crate) fn find(address: &SocketAddr) -> Option<Arc<ConnRequests>> {
    let listeners = LISTENERS.lock();
    let listener = listeners
        .all
        .iter()
        .find(|one| meets(&one.address, address))?;
    Some(listener.incoming.clone())
}

/// A passive endpoint.
pub(crate) struct Pep {
    listening: SetOnce<Listening>,
}

impl Pep {
    /// Makes an endpoint that doesn't listen.
    pub(crate) const fn new() -> Self {
        Self {
            listening: SetOnce::new(),
        }
    }
}

/// An entry in the list of listeners. Dropping this takes it out.
struct Listening(Arc<ConnRequests>);

impl Drop for Listening {
    fn drop(&mut self) {
        let mut listeners = LISTENERS.lock();
        listeners
            .all
            .retain(|listener| !Arc::ptr_eq(&listener.incoming, &self.0));
    }
}

impl provider::cm::PepOps for Pep {
    fn listen(
        &self,
        mut address: SocketAddr,
        _backlog: u32,
        incoming: Arc<ConnRequests>,
    ) -> Result<SocketAddr, Refusal> {
        let mut listeners = LISTENERS.lock();
        if address.port() == 0 {
            address.set_port(listeners.free_port()?);
        }
        if listeners
            .all
            .iter()
            .any(|one| meets(&one.address, &address))
        {
            let refusal = Refusal::new(Errno::EADDRINUSE, c"somebody listens there");
            return Err(refusal.value(u64::from(address.port())));
        }
        let listener = Listener {
            address,
            incoming: incoming.clone(),
        };
        listeners.all.push(listener, GFP_KERNEL)?;
        drop(listeners);
        match self.listening.populate(Listening(incoming)) {
            true => Ok(address),
            false => Err(Refusal::new(Errno::EOPBADSTATE, c"the endpoint listens")),
        }
    }

    fn reject(&self, mut request: ConnRequest, data: &[u8]) -> Result<(), Refusal> {
        request.own::<Requester>()?.reject(data);
        Ok(())
    }
}

/// The side that requests a connection; `None` once the request was answered. Dropping it rejects
/// the request.
pub(crate) struct Requester(Option<Arc<Side>>);

impl Requester {
    /// Makes a request of the side `from`, at the address `peer`, for a connection to `local`. May
    /// sleep.
    pub(crate) fn request(
        from: Arc<Side>,
        peer: SocketAddr,
        local: SocketAddr,
        sent: &[u8],
    ) -> Result<ConnRequest, Refusal> {
        let mut data = KVec::new();
        data.extend_from_slice(sent, GFP_KERNEL)?;
        Ok(ConnRequest {
            peer,
            local,
            data,
            domain: None,
            part: KBox::new(Self(Some(from)), GFP_KERNEL)?,
        })
    }

    /// Takes out the side, which the caller answers.
    pub(crate) fn take(&mut self) -> Option<Arc<Side>> {
        self.0.take()
    }

    /// Rejects the request; the peer gets `data`. May sleep, but not for long.
    fn reject(&mut self, data: &[u8]) {
        if let Some(from) = self.take() {
            let how = ConnFailed {
                errno: Errno::ECONNREFUSED,
                prov_errno: -Errno::ECONNREFUSED.to_c(),
            };
            from.events().failed(how, data);
        }
    }
}

impl Drop for Requester {
    fn drop(&mut self) {
        self.reject(&[]);
    }
}
