// SPDX-License-Identifier: GPL-2.0

//! Requests for connections.

use super::{
    msg_ep::Receiving,
    pep::Slot,
    Created,
    Domain,
    Info,
    InfoList,
    Local,
    MsgEndpoint,
    Passive,
    Refused,
    RequestQueue,
    SharedReceives, //
};
use crate::support::errno::Errno;
use core::net::SocketAddr;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::kfid;

/// A peer's request for a connection.
///
/// It is answered by an [endpoint](Self::endpoint), which accepts it, or rejected. Dropped, it is rejected,
/// too; forgotten, it waits until its [`Listener`](super::Listener) is closed.
pub struct Incoming {
    info: InfoList,
    data: KVec<u8>,
    slot: Arc<Slot>,
    answered: bool,
}

impl Incoming {
    pub(super) fn new(info: InfoList, data: KVec<u8>, slot: Arc<Slot>) -> Self {
        Self {
            info,
            data,
            slot,
            answered: false,
        }
    }

    /// Returns what the peer has sent with it. Any context.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the peer's address. Any context.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.info().peer()
    }

    /// Returns the address that it came to. Any context.
    pub fn source(&self) -> Option<SocketAddr> {
        self.info().source()
    }

    /// Returns what the endpoint will be like, and which domain it has to be in. Any context.
    pub fn info(&self) -> &Info {
        self.info.first()
    }

    /// `kfi_endpoint()`: opens the endpoint that answers; for the arguments see
    /// [`MsgEndpoint::open`]. May sleep.
    ///
    /// # Errors
    ///
    /// The request is rejected.
    ///
    /// - `EINVAL`: it came to a listener that is closed; the domain is of another provider; or a queue is of
    ///   another domain.
    /// - `ENOMEM`.
    pub fn endpoint<B: Local, C: Send + 'static>(
        self,
        domain: &Arc<Domain>,
        tx: &Arc<RequestQueue<B, C>>,
        rx: &Arc<RequestQueue<B, C>>,
    ) -> Result<MsgEndpoint<Created<Passive>, B, C>, Errno> {
        self.answer(domain, tx, Receiving::Own(rx.clone()))
    }

    /// The same, for an endpoint that shares its receives with others, see [`MsgEndpoint::open_sharing`]. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// As for [`endpoint`](Self::endpoint), and:
    ///
    /// - `ENODATA`: the provider has no such contexts.
    pub fn endpoint_sharing<B: Local, C: Send + 'static>(
        self,
        domain: &Arc<Domain>,
        tx: &Arc<RequestQueue<B, C>>,
        receives: &Arc<SharedReceives<B, C>>,
    ) -> Result<MsgEndpoint<Created<Passive>, B, C>, Errno> {
        self.answer(domain, tx, Receiving::Shared(receives.clone()))
    }

    fn answer<B: Local, C: Send + 'static>(
        mut self,
        domain: &Arc<Domain>,
        tx: &Arc<RequestQueue<B, C>>,
        rx: Receiving<B, C>,
    ) -> Result<MsgEndpoint<Created<Passive>, B, C>, Errno> {
        let endpoint = MsgEndpoint::create(domain, self.info(), tx, rx)?;
        self.answered = true;
        Ok(endpoint)
    }

    /// `kfi_reject()`: rejects it, with at most 148 bytes for the peer to read. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: too many bytes; it comes back.
    /// - `ENOMEM`: it is over, but the peer can't be told, and may ask again; what comes back can't be answered.
    pub fn reject(mut self, data: &[u8]) -> Result<(), Refused<Self>> {
        match self.slot.reject(self.handle(), data) {
            Ok(()) => {
                self.answered = true;
                Ok(())
            }
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }

    /// The number by which C knows it.
    fn handle(&self) -> *mut kfid {
        // SAFETY: The info is valid.
        unsafe { (*self.info().as_raw()).handle }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.answered {
            // An endpoint that couldn't be made may have rejected it.
            let _ = self.slot.reject(self.handle(), &[]);
        }
    }
}
