// SPDX-License-Identifier: GPL-2.0

//! Passive endpoints: listeners of the connection manager.

use crate::{
    device::{
        self,
        Device,
        Guest, //
    },
    refused,
    request::Request, //
};
use core::net::SocketAddr;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SetOnce, //
    }, //
};
use kfabric::{
    provider::{
        self,
        cm::{
            ConnRequest,
            Incoming, //
        }, //
    },
    Errno,
    Refusal, //
};
use rdma::cm::{
    self,
    Listener,
    Requests, //
};

/// A passive endpoint of a device's fabric. At an unspecified address it hears of requests that come
/// by other devices, too, whose name is that of the domain to answer them in.
pub(crate) struct Pep {
    device: Arc<Device>,
    listening: SetOnce<Arc<Listening>>,
}

/// A listener that goes when its device does.
#[pin_data]
struct Listening {
    #[pin]
    listener: Mutex<Option<Listener>>,
}

impl Guest for Listening {
    fn leave(&self) {
        let listener = self.listener.lock().take();
        drop(listener);
    }
}

/// Who is told of requests.
struct Door(Arc<Incoming>);

impl Requests for Door {
    fn request(&self, incoming: cm::Incoming) {
        // What nobody takes is rejected by being dropped, here or by what it was made part of.
        let Some(device) = device::of(incoming.device()) else {
            return;
        };
        if let Ok(request) = Request::new(device, incoming) {
            if let Ok(request) = KBox::new(request, GFP_KERNEL) {
                drop(self.0.request(request));
            }
        }
    }
}

impl Pep {
    /// One that doesn't listen yet.
    pub(crate) fn new(device: Arc<Device>) -> Self {
        Self {
            device,
            listening: SetOnce::new(),
        }
    }
}

impl provider::pep::Pep for Pep {
    fn listen(
        &self,
        address: SocketAddr,
        backlog: u32,
        incoming: Arc<Incoming>,
    ) -> Result<SocketAddr, Refusal> {
        let present = self.device.get().ok_or(refused::gone())?;
        let door = Arc::new(Door(incoming), GFP_KERNEL)?;
        let listener = Listener::new(address, backlog, door).map_err(refused::not_listening)?;
        if listener
            .device()
            .is_some_and(|device| !device.is_same(&present))
        {
            let why = c"the address is that of another device";
            return Err(Refusal::new(Errno::EADDRNOTAVAIL, why));
        }
        let local = listener.local().unwrap_or(address);
        let listening = Arc::pin_init(
            pin_init!(Listening {
                listener <- new_mutex!(Some(listener)),
            }),
            GFP_KERNEL,
        )
        .map_err(|_| Errno::ENOMEM)?;
        self.device
            .admit(listening.clone())
            .map_err(|_| refused::gone())?;
        match self.listening.populate(listening.clone()) {
            true => Ok(local),
            false => {
                self.device.dismiss(&*listening);
                Err(Refusal::new(Errno::EOPBADSTATE, c"the endpoint listens"))
            }
        }
    }

    fn reject(&self, mut request: KBox<dyn ConnRequest>, data: &[u8]) -> Result<(), Refusal> {
        let request = request.as_any().downcast_mut::<Request>();
        let foreign = Refusal::new(Errno::EINVAL, c"another provider's request");
        match request.ok_or(foreign)?.take() {
            Some(incoming) => {
                match incoming.reject(data) {
                    // It has forgotten the request before it looks for memory.
                    Err(error) if error == ENOMEM => Err(refused::not_told()),
                    // It is rejected; or nobody asks any more, or there is no way to who does.
                    _ => Ok(()),
                }
            }
            None => Err(refused::gone()),
        }
    }
}

impl Drop for Pep {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.as_ref() {
            self.device.dismiss(&**listening);
            listening.leave();
        }
    }
}
