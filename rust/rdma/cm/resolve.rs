// SPDX-License-Identifier: GPL-2.0

//! Addresses of peers, and the devices that lead there.
//!
//! MERGED cm/bound.rs
//! Addresses of this machine, and the devices that have them.

use kernel::{
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

use core::net::{
    IpAddr,
    SocketAddr, //
};

use rdma_bindings as b;

use super::{
    connection::{
        error_of,
        Connection,
        Proposal, //
    },
    endpoint::Endpoint,
    event::Events,
    id::{
        Id,
        Locked,
        Target, //
    }, //
};
use crate::{
    completion::Done,
    device::Device, //
};

/// Who waits for an address.
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
        // What else there is afterwards doesn't matter: connecting will fail.
        self.done.complete();
        Ok(())
    }
}

/// An address that has been resolved. To be dropped when its device goes.
///
/// # Examples
///
/// ```ignore
/// let resolved = Resolved::new(None, peer, 5000)?;
/// // What the connection is made of has to be on this device.
/// let pd = Pd::alloc(resolved.device())?;
/// ...
/// let connection = resolved.connect(&endpoint, &proposal, events)?;
/// ```
pub struct Resolved {
    // Before the device goes.
    id: Id<Resolving>,
    device: ARef<Device>,
}

impl Resolved {
    /// Resolves a peer's address, from an own one if that is given. Sleeps, uninterruptibly, so
    /// many milliseconds at most.
    ///
    /// # Errors
    ///
    /// - `ETIMEDOUT`
    /// - What the connection manager says, `ENODEV` for instance if there is no device that leads
    ///   there.
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
        // There is an answer in any case, at the end of the limit if not before.
        id.target().done.wait();
        match id.target().status.load(Relaxed) {
            0 => {
                let device = id.device().ok_or(ENODEV)?.into();
                Ok(Self { id, device })
            }
            status => Err(error_of(status)),
        }
    }

    /// The device.
    pub fn device(&self) -> &ARef<Device> {
        &self.device
    }

    /// The port of the device.
    pub fn port(&self) -> u32 {
        self.id.port()
    }

    /// The address on this side.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.local()
    }

    /// Begins to connect an endpoint there, as [`Connection::open`].
    ///
    /// # Errors
    ///
    /// Those of [`Connection::open`], and `EXDEV` if the endpoint is of another device.
    pub fn connect(
        self,
        endpoint: &Arc<Endpoint>,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Connection> {
        if !self.device.is_same(endpoint.device()) {
            return Err(EXDEV);
        }
        Connection::request(self.id, endpoint, proposal, events)
    }
}

/// Nobody is told anything.
struct Nobody;

impl Target for Nobody {
    fn event(&self, _id: &Locked<'_>, _event: &b::rdma_cm_event) -> Result {
        Ok(())
    }
}

/// Returns the device that has an address of this machine. May sleep.
///
/// # Errors
///
/// - `ENODEV` if no device has it.
/// - What else the connection manager says.
pub fn device_of(address: IpAddr) -> Result<ARef<Device>> {
    let id = Id::new(Arc::new(Nobody, GFP_KERNEL)?)?;
    // With a port of its own, so that it is in nobody's way.
    id.bind(SocketAddr::new(address, 0))?;
    Ok(id.device().ok_or(ENODEV)?.into())
}
