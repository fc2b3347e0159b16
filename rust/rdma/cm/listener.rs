// SPDX-License-Identifier: GPL-2.0

//! Listening for peers.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use core::net::SocketAddr;

use rdma_bindings as b;

use super::{
    id::{
        Id,
        Target, //
    },
    incoming::Incoming,
    locked::Locked, //
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
