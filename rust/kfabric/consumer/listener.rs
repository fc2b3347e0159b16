// SPDX-License-Identifier: GPL-2.0

//! Listeners, and the requests for connections that peers send.
//!
//! Lock order: the lock of a [`PepSlot`] comes before all locks that C calls take. Nothing is
//! closed under it.

use super::{
    conn::{
        Conn,
        ConnEvent, //
    },
    msg_ep::Receiving,
    *, //
};
use kfi_bindings::{
    kfid_pep,
    KFI_BACKLOG, //
};

/// An open passive endpoint, which keeps its event queue open.
type Pep = Handle<kfid_pep, Arc<EventQueue>>;

/// Opens a passive endpoint that reports to `queue`. `backlog` is the maximum number of pending
/// requests. May sleep.
fn open_pep(
    fabric: &Arc<Fabric>,
    info: &Info,
    queue: &Arc<EventQueue>,
    backlog: Option<u32>,
) -> Result<Pep, Errno> {
    // SAFETY: The fabric is open as long as `fabric`. The info is valid.
    let pep = unsafe { open_by!(fabric.as_raw(), passive_ep(info.as_raw(); ptr::null_mut())) }?;
    let pep = Pep::new(pep, queue.clone(), ());
    let fid = pep.fid();
    // SAFETY: The passive endpoint is open. So is the queue, to which it has a reference.
    unsafe { handle::bind(fid, queue.as_raw().cast(), 0) }?;
    if let Some(backlog) = backlog {
        let mut backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        let arg = ptr::from_mut(&mut backlog).cast();
        // SAFETY: The passive endpoint is open. `arg` points to the `int` that the command takes.
        unsafe { handle::control(fid, KFI_BACKLOG, arg) }?;
    }
    Ok(pep)
}

/// A passive endpoint, or nothing before it is open and after it is closed.
type PepSlot = Mutex<Option<Pep>>;

/// Calls `call`, which may sleep, with the passive endpoint. Returns `EOPBADSTATE` if there is none.
fn with_pep<R>(
    slot: &PepSlot,
    call: impl FnOnce(*mut kfid_pep) -> Result<R, Errno>,
) -> Result<R, Errno> {
    match &*slot.lock() {
        Some(pep) => call(pep.as_ptr()),
        None => Err(Errno::EOPBADSTATE),
    }
}

/// Rejects a request to this passive endpoint: `kfi_reject()`. May sleep.
///
/// Succeeds if the passive endpoint is closed, because closing it rejected the request.
///
/// # Errors
///
/// - `EINVAL`: the data is too long, or the request was answered.
fn reject(slot: &PepSlot, request: *mut kfid, data: &[u8]) -> Result<(), Errno> {
    let rejected = with_pep(slot, |pep| {
        let (param, len) = (data.as_ptr().cast(), data.len());
        // SAFETY: The passive endpoint is open. The call only reads the `len` bytes of `data`.
        unsafe { op!((*pep).cm, reject(pep, request, param, len)) }
    });
    match rejected {
        Err(Errno::EOPBADSTATE) => Ok(()),
        rejected => handle::result(rejected?),
    }
}

/// A peer's request for a connection.
///
/// Open an [endpoint](Self::endpoint) to accept the request, or reject it. Dropping it rejects it,
/// too. Forgetting it leaves it pending until its [`Listener`] is closed.
pub struct Incoming {
    info: InfoList,
    data: KVec<u8>,
    slot: Arc<PepSlot>,
    answered: bool,
}

impl Incoming {
    fn new(info: InfoList, data: KVec<u8>, slot: Arc<PepSlot>) -> Self {
        Self {
            info,
            data,
            slot,
            answered: false,
        }
    }

    /// Returns the data that the peer sent. Any context.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the peer's address. Any context.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.info().peer()
    }

    /// Returns the local address of the request. Any context.
    pub fn source(&self) -> Option<SocketAddr> {
        self.info().source()
    }

    /// Returns the offer to open a domain and an endpoint with. Any context.
    pub fn info(&self) -> &Info {
        self.info.first()
    }

    /// Opens the endpoint that answers the request: `kfi_endpoint()`. May sleep.
    ///
    /// The arguments are those of [`MsgEndpoint::open`].
    ///
    /// # Errors
    ///
    /// All errors reject the request.
    ///
    /// - `EINVAL`: the listener is closed, the domain is of another provider, or a queue is of
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

    /// Opens an endpoint with shared receives, like [`endpoint`](Self::endpoint). May sleep.
    ///
    /// # Errors
    ///
    /// The errors of `endpoint`, and:
    ///
    /// - `ENODATA`: the provider has no shared contexts.
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

    /// Rejects the request, with up to 148 bytes of data: `kfi_reject()`. May sleep.
    ///
    /// # Errors
    ///
    /// All errors have the request.
    ///
    /// - `EINVAL`: the data is too long.
    /// - `ENOMEM`: the request is rejected, but the peer isn't told. It may ask again. The request
    ///   can't be answered any more.
    pub fn reject(mut self, data: &[u8]) -> Result<(), Refused<Self>> {
        match reject(&self.slot, self.handle(), data) {
            Ok(()) => {
                self.answered = true;
                Ok(())
            }
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }

    /// Returns the handle of the request in C.
    fn handle(&self) -> *mut kfid {
        // SAFETY: The info is valid as long as `self`.
        unsafe { (*self.info().as_raw()).handle }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.answered {
            // If opening the endpoint failed, the request may be rejected already.
            let _ = reject(&self.slot, self.handle(), &[]);
        }
    }
}

/// The handler of a listener's requests.
pub trait ListenHandler: Send + Sync + 'static {
    /// Handles a peer's request.
    ///
    /// # Context
    ///
    /// Process context. May sleep and answer the request. Must not drop or close the listener.
    /// Allocations don't wait for I/O.
    fn request(&self, request: Incoming);
}

impl ListenHandler for NoHandler {
    fn request(&self, _request: Incoming) {
        match *self {}
    }
}

/// Options of a listener, with a handler of type `H`.
pub struct ListenerOptions<H = NoHandler> {
    backlog: Option<u32>,
    handler: Option<KBox<H>>,
}

impl Default for ListenerOptions {
    /// Creates options with the defaults, and no handler.
    fn default() -> Self {
        Self {
            backlog: None,
            handler: None,
        }
    }
}

impl<H> ListenerOptions<H> {
    /// Sets the maximum number of pending requests: 1 to 1024, by default 64.
    pub fn backlog(mut self, requests: u32) -> Self {
        self.backlog = Some(requests);
        self
    }

    /// Sets the handler of requests, instead of [`wait`](Listener::wait).
    pub fn handler<N: ListenHandler>(self, handler: KBox<N>) -> ListenerOptions<N> {
        ListenerOptions {
            backlog: self.backlog,
            handler: Some(handler),
        }
    }
}

/// A listening passive endpoint.
///
/// Dropping or closing it rejects all pending requests, and keeps connections. The handler must not
/// do it. If the handler's module is unloaded first, the handler is removed like that of an
/// [`EventQueue`].
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
/// /// Waits for a peer that sends the password.
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

/// Default of the maximum number of pending requests.
const BACKLOG: u32 = 64;

impl Listener {
    /// Listens at the [source](super::Hints::source) of an offer: `kfi_passive_ep()`,
    /// `kfi_listen()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the offer has no source address, or the backlog is invalid.
    /// - `EADDRINUSE`: another listener uses the address.
    /// - `EOPBADSTATE`: the handler's module is being unloaded.
    /// - `ENOSYS`: the provider has no passive endpoints.
    /// - `ENOMEM`.
    pub fn open<H: ListenHandler>(
        fabric: &Arc<Fabric>,
        info: &Info,
        options: ListenerOptions<H>,
    ) -> Result<Self, Errno> {
        let slot = Arc::pin_init(new_mutex!(None), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        let size = index(options.backlog.unwrap_or(BACKLOG));
        let conn = match options.handler {
            Some(handler) => {
                let slot = slot.clone();
                Conn::open_with(fabric, size, move |event, cause| match event {
                    ConnEvent::Request(info, data) => {
                        handler.request(Incoming::new(info, data, slot.clone()));
                    }
                    // A listener has no failures. An unread one would call the handler again.
                    ConnEvent::Failed => drop(cause()),
                    ConnEvent::Connected(_) | ConnEvent::Shutdown => (),
                })?
            }
            None => Conn::open(fabric, size)?,
        };
        let listener = Self { conn, slot };
        listener.begin(fabric, info, options.backlog)?;
        Ok(listener)
    }

    fn begin(&self, fabric: &Arc<Fabric>, info: &Info, backlog: Option<u32>) -> Result<(), Errno> {
        // Stored before the first request can arrive.
        let pep = open_pep(fabric, info, self.conn.queue(), backlog)?;
        *self.slot.lock() = Some(pep);
        with_pep(&self.slot, |pep| {
            // SAFETY: `pep` is open, because the slot's lock keeps it.
            handle::result(unsafe { op!((*pep).cm, listen(pep)) }?)
        })
    }

    /// Returns the address of the listener: `kfi_getname()`. May sleep.
    pub fn address(&self) -> Result<SocketAddr, Errno> {
        with_pep(&self.slot, |pep| {
            handle::address(|address, len| {
                // SAFETY: `pep` is open, because the slot's lock keeps it. `address` has `*len`
                // bytes.
                unsafe { op!((*pep).cm, getname(pep.cast(), address, len)) }
            })
        })
    }

    /// Returns the next request. Sleeps until there is one, for at most `msecs` milliseconds if
    /// given.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal is pending.
    /// - `ENOSYS`: the listener has a handler.
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Incoming>, Errno> {
        match self.conn.wait(msecs)? {
            Some(ConnEvent::Request(info, data)) => {
                Ok(Some(Incoming::new(info, data, self.slot.clone())))
            }
            // A listener has no other events.
            Some(_) | None => Ok(None),
        }
    }

    /// Stops listening: `kfi_close()`. Sleeps until the handler has returned.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, `EOPBADSTATE`: the listener still listens, and the error has it.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        let Some(pep) = self.slot.lock().take() else {
            return Ok(());
        };
        pep.close().map_err(|error| {
            let errno = error.errno();
            let open = error.into_inner().map(|pep| *self.slot.lock() = Some(pep));
            CloseError::new(errno, open.map(|()| self))
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let pep = self.slot.lock().take();
        // Closed here, without the lock.
        drop(pep);
    }
}
