// SPDX-License-Identifier: GPL-2.0

//! Listening for connections.

use super::{
    call::{
        self,
        op, //
    },
    conn::{
        Conn,
        Hears,
        News, //
    },
    name,
    pep::{
        self,
        Slot, //
    },
    CloseError,
    Fabric,
    Incoming,
    Info,
    NoHandler, //
};
use crate::support::{
    errno::Errno,
    num::index, //
};
use core::net::SocketAddr;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::kfi_ops_cm;

/// What a listener's owner wants to be told.
pub trait ListenHandler: Send + Sync + 'static {
    /// A peer asks for a connection. Process context; may sleep, and answer, but not drop or close the
    /// listener. Allocations in it don't wait for I/O.
    fn request(&self, request: Incoming);
}

impl ListenHandler for NoHandler {
    fn request(&self, _request: Incoming) {
        match *self {}
    }
}

/// A handler, as one who hears of a listener's requests.
struct Told<H> {
    handler: KBox<H>,
    slot: Arc<Slot>,
}

impl<H: ListenHandler> Hears for Told<H> {
    fn hear(&self, news: News, failure: impl FnOnce() -> (Errno, KVec<u8>)) {
        match news {
            News::Request(info, data) => {
                let request = Incoming::new(info, data, self.slot.clone());
                self.handler.request(request);
            }
            // A listener has none; but one that isn't read would be news again.
            News::Failed => drop(failure()),
            News::Connected(_) | News::Shutdown => (),
        }
    }
}

/// How to listen, with a handler of type `H`.
pub struct ListenerOptions<H = NoHandler> {
    backlog: Option<u32>,
    handler: Option<KBox<H>>,
}

impl Default for ListenerOptions {
    /// Nothing in particular, and no handler.
    fn default() -> Self {
        Self {
            backlog: None,
            handler: None,
        }
    }
}

impl<H> ListenerOptions<H> {
    /// How many requests may wait for an answer, 1 to 1024; 64 if nothing is said.
    pub fn backlog(mut self, requests: u32) -> Self {
        self.backlog = Some(requests);
        self
    }

    /// Whom to tell of requests, instead of [waiting](Listener::wait) for them.
    pub fn handler<N: ListenHandler>(self, handler: KBox<N>) -> ListenerOptions<N> {
        ListenerOptions {
            backlog: self.backlog,
            handler: Some(handler),
        }
    }
}

/// A passive endpoint that listens.
///
/// Dropping or closing it rejects all requests that nobody has answered; connections stay. It is done
/// by a thread that must not run its handler. A handler that is still there when the module is unloaded
/// that it is part of is taken away as that of an [`EventQueue`](super::EventQueue) is.
///
/// # Examples
///
/// ```
/// use kernel::prelude::*;
/// use kfabric::consumer::{
///     CompletionQueueOptions, Connected, Domain, Fabric, Info, Listener, ListenerOptions,
///     MsgEndpoint, RequestQueue,
/// };
///
/// /// Waits for a peer who knows the word.
/// fn meet(info: &Info) -> Result<MsgEndpoint<Connected, KVec<u8>>> {
///     let fabric = Fabric::open(info)?;
///     let listener = Listener::open(&fabric, info, ListenerOptions::default())?;
///     loop {
///         let request = listener.wait(None)?.ok_or(ETIMEDOUT)?;
///         if request.data() != b"the word" {
///             request.reject(b"go away")?;
///             continue;
///         }
///         let domain = Domain::open(&fabric, request.info())?;
///         let queue = RequestQueue::open(&domain, CompletionQueueOptions::default().waits())?;
///         let endpoint = request.endpoint(&domain, &queue, &queue)?.enable()?;
///         return Ok(endpoint.accept(b"")?.wait(Some(5000))?);
///     }
/// }
/// ```
pub struct Listener {
    conn: Conn,
    slot: Arc<Slot>,
}

/// How many requests may wait if nothing is said.
const BACKLOG: u32 = 64;

impl Listener {
    /// `kfi_passive_ep()` and `kfi_listen()`: listens at the [source](super::Hints::source) of an offer.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the offer has no such address; or so many requests may not wait.
    /// - `EADDRINUSE`: somebody else listens there.
    /// - `EOPBADSTATE`: it is to have a handler, and the handler's module is being unloaded.
    /// - `ENOSYS`: the provider has no passive endpoints.
    /// - `ENOMEM`.
    pub fn open<H: ListenHandler>(
        fabric: &Arc<Fabric>,
        info: &Info,
        options: ListenerOptions<H>,
    ) -> Result<Self, Errno> {
        let slot = Slot::new()?;
        let size = index(options.backlog.unwrap_or(BACKLOG));
        let conn = match options.handler {
            Some(handler) => {
                let slot = slot.clone();
                Conn::open_with(fabric, size, Told { handler, slot })?
            }
            None => Conn::open(fabric, size)?,
        };
        let listener = Self { conn, slot };
        listener.begin(fabric, info, options.backlog)?;
        Ok(listener)
    }

    fn begin(&self, fabric: &Arc<Fabric>, info: &Info, backlog: Option<u32>) -> Result<(), Errno> {
        // It is there before the first request.
        let pep = pep::open(fabric, info, self.conn.queue(), backlog)?;
        self.slot.put(pep);
        self.slot.with(|pep| {
            // SAFETY: The passive endpoint is open.
            call::result(unsafe { op!((*pep).cm, kfi_ops_cm, listen(pep)) }?)
        })
    }

    /// `kfi_getname()`: returns the address that it listens at. May sleep.
    pub fn address(&self) -> Result<SocketAddr, Errno> {
        self.slot.with(|pep| {
            name::of(|address, len| {
                // SAFETY: The passive endpoint is open, and the others are valid for the call.
                unsafe { op!((*pep).cm, kfi_ops_cm, getname(pep.cast(), address, len)) }
            })
        })
    }

    /// Waits for a request, so many milliseconds or for ever; `None` if none came. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: the listener has a handler, which is told.
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Incoming>, Errno> {
        match self.conn.wait(msecs)? {
            Some(News::Request(info, data)) => {
                Ok(Some(Incoming::new(info, data, self.slot.clone())))
            }
            // It has no other news.
            Some(_) | None => Ok(None),
        }
    }

    /// `kfi_close()`: listens no more, and tells whether that worked. Sleeps until the handler has ended.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, `EOPBADSTATE`: it still listens, and comes back.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        let Some(pep) = self.slot.take() else {
            return Ok(());
        };
        pep.close().map_err(|error| {
            let errno = error.errno();
            let open = error.into_inner().map(|pep| self.slot.put(pep));
            CloseError::new(errno, open.map(|()| self))
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Closed here, not under the lock.
        drop(self.slot.take());
    }
}
