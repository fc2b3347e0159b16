// SPDX-License-Identifier: GPL-2.0

//! Devices of local addresses, and devices that lead to peers' addresses.

use super::*;
use crate::completion::Done;
use core::net::IpAddr;

/// The waiter for a resolved address.
#[pin_data]
struct Resolving {
    #[pin]
    done: Done,
    status: Atomic<i32>,
}

impl Target for Resolving {
    fn event(&self, _id: &Locked<'_>, event: &b::rdma_cm_event) -> Result {
        if event.event == b::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR {
            self.status.store(event.status, Relaxed);
        }
        // Later events need no handling: connecting fails after them.
        self.done.complete();
        Ok(())
    }
}

/// A resolved address. The owner must drop it when its device is removed.
///
/// # Examples
///
/// ```ignore
/// let resolved = Resolved::new(None, peer, 5000)?;
/// // All resources of the connection must be on this device.
/// let pd = Pd::alloc(resolved.device())?;
/// ...
/// let connection = resolved.connect(&endpoint, &proposal, events)?;
/// ```
pub struct Resolved {
    // Dropped before the device.
    id: Id<Resolving>,
    device: ARef<Device>,
}

impl Resolved {
    /// Resolves a peer's address, from the address `from` if it is given. Sleeps at most `limit`
    /// milliseconds.
    ///
    /// # Errors
    ///
    /// - `EINTR`: the current task was killed.
    /// - `ETIMEDOUT` after `limit` milliseconds.
    /// - Other errors of the connection manager, for instance `ENODEV` if no device leads to the
    ///   address.
    pub fn new(from: Option<SocketAddr>, to: SocketAddr, limit: u32) -> Result<Self> {
        let resolving = Arc::pin_init(
            pin_init!(Resolving {
                done <- Done::new(),
                status: Atomic::new(0),
            }),
            GFP_KERNEL,
        )?;
        let id = Id::new(resolving)?;
        id.resolve(from, to, limit)?;
        // The connection manager answers at the end of the limit at the latest.
        id.target().done.wait_killable()?;
        match id.target().status.load(Relaxed) {
            0 => {
                let device = id.device().ok_or(ENODEV)?.into();
                Ok(Self { id, device })
            }
            status => Err(error_of(status)),
        }
    }

    /// Returns the device.
    pub fn device(&self) -> &ARef<Device> {
        &self.device
    }

    /// Returns the port of the device.
    pub fn port(&self) -> u32 {
        self.id.port()
    }

    /// Returns the local address.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.local()
    }

    /// Begins to connect an endpoint like [`Connection::open`].
    ///
    /// # Errors
    ///
    /// - `EXDEV` if the endpoint is on another device.
    /// - The errors of [`Connection::open`].
    pub fn connect(
        self,
        endpoint: &Arc<Endpoint>,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Connection> {
        if !self.device.is_same(endpoint.device()) {
            return Err(EXDEV);
        }
        let state = ConnState::new(endpoint, proposal, MAX_REQUEST_DATA, events, Step::Route)?;
        Connection::with(self.id, state, |state, id| state.resolve_route(id))
    }
}

/// Ignores all events.
impl Target for () {
    fn event(&self, _id: &Locked<'_>, _event: &b::rdma_cm_event) -> Result {
        Ok(())
    }
}

/// Returns the device that has a local address. May sleep.
///
/// # Errors
///
/// - `ENODEV` if no device has it.
/// - Other errors of the connection manager.
pub fn device_of(address: IpAddr) -> Result<ARef<Device>> {
    let id = Id::new(Arc::new((), GFP_KERNEL)?)?;
    // With a free port, which conflicts with no other listener.
    id.bind(SocketAddr::new(address, 0))?;
    Ok(id.device().ok_or(ENODEV)?.into())
}
