// SPDX-License-Identifier: GPL-2.0

//! Listeners, and the requests for connections that peers send.
//!
//! Lock order: the lock of a [`PepSlot`] comes before all locks that C calls take. Nothing is
//! closed under it.

use super::{
    call::{
        self,
        op, //
    },
    conn::{
        Conn,
        ConnEvent,
        ConnEventHandler, //
    },
    handle::Handle,
    msg_ep::Receiving,
    CloseError, Created, Domain, EventQueue, Fabric, Info, InfoList, Local, MsgEndpoint, NoHandler,
    Passive, Refused, RequestQueue, SharedReceives, //
};
use crate::support::{
    errno::Errno,
    num::index, //
};
use core::{
    net::SocketAddr,
    ptr, //
};
use kernel::{
    ffi::c_int,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use kfi_bindings::{
    kfi_ops_cm,
    kfi_ops_fabric,
    kfid,
    kfid_pep,
    KFI_BACKLOG, //
};

/// An open passive endpoint; its event queue stays open as long.
pub(super) type Pep = Handle<kfid_pep, Arc<EventQueue>>;

/// Opens a passive endpoint that reports to a queue, and at which so many requests may wait, if it isn't
/// left to the core. May sleep.
fn open_pep(
    fabric: &Arc<Fabric>,
    info: &Info,
    queue: &Arc<EventQueue>,
    backlog: Option<u32>,
) -> Result<Pep, Errno> {
    let (raw, mut pep) = (fabric.as_raw(), ptr::null_mut());
    // SAFETY: `raw` is open as long as `fabric` is there; the info is valid, and `pep` is a local.
    let ret = unsafe {
        op!(
            (*raw).ops,
            kfi_ops_fabric,
            passive_ep(raw, info.as_raw(), &mut pep, ptr::null_mut())
        )
    }?;
    let pep = Pep::new(call::opened(ret, pep)?, queue.clone(), ());
    let fid = pep.fid();
    // SAFETY: Both are open; the queue as long as the passive endpoint.
    unsafe { call::bind(fid, queue.as_raw().cast(), 0) }?;
    if let Some(backlog) = backlog {
        let mut backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        let arg = ptr::from_mut(&mut backlog).cast();
        // SAFETY: The passive endpoint is open, and the argument is what the command takes.
        unsafe { call::control(fid, KFI_BACKLOG, arg) }?;
    }
    Ok(pep)
}

/// A place for a passive endpoint, which is empty before it was opened and after it was closed.
#[pin_data]
pub(super) struct PepSlot {
    #[pin]
    pep: Mutex<Option<Pep>>,
}

impl PepSlot {
    pub(super) fn new() -> Result<Arc<Self>, Errno> {
        let slot = pin_init!(Self {
            pep <- new_mutex!(None),
        });
        Arc::pin_init(slot, GFP_KERNEL).map_err(|_| Errno::ENOMEM)
    }

    /// Puts it in.
    pub(super) fn put(&self, pep: Pep) {
        let before = self.pep.lock().replace(pep);
        drop(before);
    }

    /// Takes it out, to be closed.
    pub(super) fn take(&self) -> Option<Pep> {
        self.pep.lock().take()
    }

    /// Does something with it that may sleep; `EOPBADSTATE` if there is none.
    pub(super) fn with<R>(
        &self,
        call: impl FnOnce(*mut kfid_pep) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match &*self.pep.lock() {
            Some(pep) => call(pep.as_ptr()),
            None => Err(Errno::EOPBADSTATE),
        }
    }

    /// `kfi_reject()`: rejects a request that has come there. Where there is none any more, it was
    /// rejected. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: too many bytes, or it was answered.
    pub(super) fn reject(&self, request: *mut kfid, data: &[u8]) -> Result<(), Errno> {
        let rejected = self.with(|pep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The passive endpoint is open, and the data are valid for the call.
            unsafe { op!((*pep).cm, kfi_ops_cm, reject(pep, request, param, len)) }
        });
        match rejected {
            Err(Errno::EOPBADSTATE) => Ok(()),
            rejected => call::result(rejected?),
        }
    }
}

/// A peer's request for a connection.
///
/// It is answered by an [endpoint](Self::endpoint), which accepts it, or rejected. Dropped, it is rejected,
/// too; forgotten, it waits until its [`Listener`](super::Listener) is closed.
pub struct Incoming {
    info: InfoList,
    data: KVec<u8>,
    slot: Arc<PepSlot>,
    answered: bool,
}

impl Incoming {
    pub(super) fn new(info: InfoList, data: KVec<u8>, slot: Arc<PepSlot>) -> Self {
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
struct HandlerAdapter<H> {
    handler: KBox<H>,
    slot: Arc<PepSlot>,
}

impl<H: ListenHandler> ConnEventHandler for HandlerAdapter<H> {
    fn hear(&self, news: ConnEvent, failure: impl FnOnce() -> (Errno, KVec<u8>)) {
        match news {
            ConnEvent::Request(info, data) => {
                let request = Incoming::new(info, data, self.slot.clone());
                self.handler.request(request);
            }
            // A listener has none; but one that isn't read would be news again.
            ConnEvent::Failed => drop(failure()),
            ConnEvent::Connected(_) | ConnEvent::Shutdown => (),
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
    slot: Arc<PepSlot>,
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
        let slot = PepSlot::new()?;
        let size = index(options.backlog.unwrap_or(BACKLOG));
        let conn = match options.handler {
            Some(handler) => {
                let slot = slot.clone();
                Conn::open_with(fabric, size, HandlerAdapter { handler, slot })?
            }
            None => Conn::open(fabric, size)?,
        };
        let listener = Self { conn, slot };
        listener.begin(fabric, info, options.backlog)?;
        Ok(listener)
    }

    fn begin(&self, fabric: &Arc<Fabric>, info: &Info, backlog: Option<u32>) -> Result<(), Errno> {
        // It is there before the first request.
        let pep = open_pep(fabric, info, self.conn.queue(), backlog)?;
        self.slot.put(pep);
        self.slot.with(|pep| {
            // SAFETY: The passive endpoint is open.
            call::result(unsafe { op!((*pep).cm, kfi_ops_cm, listen(pep)) }?)
        })
    }

    /// `kfi_getname()`: returns the address that it listens at. May sleep.
    pub fn address(&self) -> Result<SocketAddr, Errno> {
        self.slot.with(|pep| {
            call::address(|address, len| {
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
            Some(ConnEvent::Request(info, data)) => {
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
