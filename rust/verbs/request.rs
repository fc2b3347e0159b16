// SPDX-License-Identifier: GPL-2.0

//! Requests for connections that wait for an answer.
//!
//! Whoever has one may keep it for long; the device may go meanwhile, and takes the request with it.

use crate::device::{
    Device,
    Guest, //
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
use kfabric::{
    provider::cm::ConnRequest,
    Errno,
    Refusal, //
};
use rdma::{
    cm::Incoming,
    device::DeviceName, //
};

/// A request that goes when its device does.
#[pin_data]
struct Waiting {
    #[pin]
    incoming: Mutex<Option<Incoming>>,
}

impl Waiting {
    fn take(&self) -> Option<Incoming> {
        self.incoming.lock().take()
    }
}

impl Guest for Waiting {
    fn leave(&self) {
        drop(self.take());
    }
}

/// A request for a connection. Dropped without an answer, it is rejected.
pub(crate) struct Request {
    waiting: Arc<Waiting>,
    device: Arc<Device>,
    name: DeviceName,
    peer: SocketAddr,
    local: SocketAddr,
    data: KVec<u8>,
}

impl Request {
    /// A peer asks for a connection by this device. May sleep.
    pub(crate) fn new(device: Arc<Device>, incoming: Incoming) -> Result<Self, Refusal> {
        let nowhere = Errno::EADDRNOTAVAIL;
        let (peer, local) = (
            incoming.peer().ok_or(nowhere)?,
            incoming.local().ok_or(nowhere)?,
        );
        let mut data = KVec::new();
        data.extend_from_slice(incoming.private_data(), GFP_KERNEL)?;
        let name = incoming.device().name();
        let waiting = Arc::pin_init(
            pin_init!(Waiting {
                incoming <- new_mutex!(Some(incoming)),
            }),
            GFP_KERNEL,
        )
        .map_err(|_| Errno::ENOMEM)?;
        device.admit(waiting.clone()).map_err(|_| Errno::ENODEV)?;
        Ok(Self {
            waiting,
            device,
            name,
            peer,
            local,
            data,
        })
    }

    /// Takes it out to be answered, unless the device is gone. May sleep.
    pub(crate) fn take(&mut self) -> Option<Incoming> {
        self.waiting.take()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.device.dismiss(&*self.waiting);
        self.waiting.leave();
    }
}

impl ConnRequest for Request {
    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn local(&self) -> SocketAddr {
        self.local
    }

    fn data(&self) -> &[u8] {
        &self.data
    }

    fn domain(&self) -> Option<&CStr> {
        Some(self.name.as_c_str())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
