// SPDX-License-Identifier: GPL-2.0

//! Passive endpoints and their connection requests.
//!
//! A consumer may keep a request for long. If the device is removed meanwhile, the request ends.

use crate::{
    device::{
        self,
        Device,
        Guest, //
    },
    prelude::*, //
};
use kernel::str::CString;
use kfabric::provider::cm::ConnRequest;
use rdma::cm::{
    self,
    Incoming,
    Listener,
    Requests, //
};

/// A passive endpoint of a device's fabric. At an unspecified address it also gets the requests
/// that arrive at other devices. A request names the device, whose domain must answer it.
pub(crate) struct Pep {
    device: Arc<Device>,
    listening: SetOnce<Arc<Held<Listener>>>,
}

/// An object of the connection manager that is dropped when its device is removed.
#[pin_data]
struct Held<T> {
    #[pin]
    inner: Mutex<Option<T>>,
}

impl<T: Send + Unpin + 'static> Held<T> {
    /// Adds the object to the guests of its device. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODEV`: the device is gone.
    /// - `ENOMEM`
    fn new(device: &Device, inner: T) -> Result<Arc<Self>, Refusal> {
        let held = pin_init!(Self {
            inner <- new_mutex!(Some(inner)),
        });
        let held = Arc::pin_init(held, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        device
            .admit(held.clone())
            .map_err(|_| driver_errors::gone())?;
        Ok(held)
    }

    /// Takes the object out, unless the device is gone. May sleep.
    fn take(&self) -> Option<T> {
        self.inner.lock().take()
    }
}

impl<T: Send + Unpin + 'static> Guest for Held<T> {
    fn leave(&self) {
        drop(self.take());
    }
}

/// Forwards connection requests to the core.
struct Door(Arc<provider::cm::ConnRequests>);

impl Requests for Door {
    fn request(&self, incoming: cm::Incoming) {
        // Requests that nobody accepts are rejected when they are dropped.
        let Some(device) = device::of(incoming.device()) else {
            return;
        };
        if let Ok(request) = Request::conn_request(device, incoming) {
            drop(self.0.request(request));
        }
    }
}

impl Pep {
    /// Creates a passive endpoint that does not listen yet.
    pub(crate) fn new(device: Arc<Device>) -> Self {
        Self {
            device,
            listening: SetOnce::new(),
        }
    }
}

impl provider::cm::PepOps for Pep {
    fn listen(
        &self,
        address: SocketAddr,
        backlog: u32,
        incoming: Arc<provider::cm::ConnRequests>,
    ) -> Result<SocketAddr, Refusal> {
        let present = self.device.get().ok_or(driver_errors::gone())?;
        let door = Arc::new(Door(incoming), GFP_KERNEL)?;
        let listener =
            Listener::new(address, backlog, door).map_err(driver_errors::not_listening)?;
        if listener
            .device()
            .is_some_and(|device| !device.is_same(&present))
        {
            let why = c"the address is that of another device";
            return Err(Refusal::new(Errno::EADDRNOTAVAIL, why));
        }
        let local = listener.local().unwrap_or(address);
        let listening = Held::new(&self.device, listener)?;
        match self.listening.populate(listening.clone()) {
            true => Ok(local),
            false => {
                self.device.dismiss(&*listening);
                Err(Refusal::new(Errno::EOPBADSTATE, c"the endpoint listens"))
            }
        }
    }

    fn reject(&self, mut request: ConnRequest, data: &[u8]) -> Result<(), Refusal> {
        match request.own::<Request>()?.take() {
            Some(incoming) => {
                match incoming.reject(data) {
                    // The connection manager forgets the request before it allocates the answer.
                    // The peer asks again.
                    Err(error) if error == ENOMEM => {
                        Err(Refusal::new(Errno::ENOMEM, c"no memory to tell the peer"))
                    }
                    // The request is rejected, or the peer has given up or can't be reached.
                    _ => Ok(()),
                }
            }
            None => Err(driver_errors::gone()),
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

/// The provider's part of a connection request. Dropped without an answer, it rejects the request.
pub(crate) struct Request {
    waiting: Arc<Held<Incoming>>,
    device: Arc<Device>,
}

impl Request {
    /// Creates a request of a peer through this device. May sleep.
    fn conn_request(device: Arc<Device>, incoming: Incoming) -> Result<ConnRequest, Refusal> {
        let nowhere = Errno::EADDRNOTAVAIL;
        let (peer, local) = (
            incoming.peer().ok_or(nowhere)?,
            incoming.local().ok_or(nowhere)?,
        );
        let mut data = KVec::new();
        data.extend_from_slice(incoming.private_data(), GFP_KERNEL)?;
        let domain = CString::try_from(incoming.device().name().as_c_str())?;
        let waiting = Held::new(&device, incoming)?;
        Ok(ConnRequest {
            peer,
            local,
            data,
            domain: Some(domain),
            part: KBox::new(Self { waiting, device }, GFP_KERNEL)?,
        })
    }

    /// Takes the request out to answer it, unless the device is gone. May sleep.
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
