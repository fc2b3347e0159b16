// SPDX-License-Identifier: GPL-2.0

//! Connected endpoints: their states, and connecting them.

use super::{
    conn::{
        Conn,
        ConnEvent, //
    },
    *, //
};
use kfi_bindings::{
    KFI_ENABLE,
    KFI_RECV,
    KFI_TRANSMIT, //
};

/// The role of an endpoint that asks for a connection.
pub enum Active {}
/// The role of an endpoint that answers a request for a connection.
pub enum Passive {}

/// The state of a new endpoint, to which queues and counters can be bound.
pub struct Created<R>(pub(super) PhantomData<R>);
/// The state of an endpoint that can be connected.
pub struct Enabled<R>(pub(super) PhantomData<R>);
/// The state of an endpoint that waits for its peer.
pub struct Connecting(pub(super) ());
/// The state of an endpoint that has or had a connection.
pub struct Connected {
    pub(super) data: KVec<u8>,
}

/// States in which receives can be posted.
pub trait Receives: sealed::SealedState {}

mod sealed {
    /// Seals [`Receives`](super::Receives).
    pub trait SealedState {}
}

impl<R> sealed::SealedState for Enabled<R> {}
impl sealed::SealedState for Connecting {}
impl sealed::SealedState for Connected {}
impl<R> Receives for Enabled<R> {}
impl Receives for Connecting {}
impl Receives for Connected {}

/// An endpoint for a connection to one peer (`KFI_EP_MSG`), in a state `S`. Its requests have
/// memory of type `B` and a context of type `C`.
///
/// Its states are [`Created`], [`Enabled`], [`Connecting`] and [`Connected`]. Each step consumes
/// the endpoint in the previous state. If connecting fails, or the connection ends, the endpoint
/// can't be used again: drop it and open another one. Receives can be posted once it is enabled.
/// Other transfers need a connection.
///
/// Dropping or closing it ends the connection, and sleeps until all posted transfers have
/// completed. The queues of requests return them then. The endpoint's handler must not drop or
/// close it.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Connected, Domain, Info, MsgEndpoint, Request, RequestQueue};
///
/// type Queue = Arc<RequestQueue<KVec<u8>>>;
///
/// /// Connects to the peer of the offer, and says hello.
/// fn hello(domain: &Arc<Domain>, info: &Info, queue: &Queue) -> Result {
///     let endpoint = MsgEndpoint::open(domain, info, queue, queue)?.enable()?;
///     // Posted first, for the peer's answer.
///     endpoint.recv(Request::new(KVec::from_elem(0, 4096, GFP_KERNEL)?, ())?)?;
///     let endpoint: MsgEndpoint<Connected, _> = endpoint.connect(b"")?.wait(Some(5000))?;
///     let mut hello = KVec::new();
///     hello.extend_from_slice(b"hello", GFP_KERNEL)?;
///     Ok(endpoint.send(Request::new(hello, ())?)?)
/// }
/// ```
///
/// # Invariants
///
/// Everything posted on the endpoint has the context of a request of type `Request<B, C>`, or null.
pub struct MsgEndpoint<S, B: Local, C: Send + 'static = ()> {
    pub(super) handle: Handle<kfid_ep, Arc<Domain>, Uses<B, C>>,
    pub(super) state: S,
}

/// The objects that an endpoint keeps open, dropped in this order.
pub(super) struct Uses<B: Local, C: Send + 'static> {
    pub(super) conn: Option<Conn>,
    _tx: Arc<RequestQueue<B, C>>,
    _rx: Receiving<B, C>,
}

/// The receives of an endpoint.
pub(super) enum Receiving<B: Local, C: Send + 'static> {
    /// Its own, which this queue returns.
    Own(Arc<RequestQueue<B, C>>),
    /// The receives of a shared context.
    Shared(Arc<SharedReceives<B, C>>),
}

impl<B: Local, C: Send + 'static> Receiving<B, C> {
    /// Returns the object to bind the endpoint to, and the flags.
    fn bound(&self) -> (*mut kfid, u64) {
        match self {
            Self::Own(queue) => (
                queue.completion_queue().as_raw().cast(),
                widen_u32(KFI_RECV),
            ),
            Self::Shared(receives) => (receives.as_raw().cast(), 0),
        }
    }
}

/// Maximum number of events of an endpoint: connected and shutdown.
const EVENTS: usize = 2;

impl<B: Local, C: Send + 'static> MsgEndpoint<Created<Active>, B, C> {
    /// Opens the endpoint of an offer in its domain: `kfi_endpoint()`. May sleep.
    ///
    /// The endpoint connects to the [peer](super::Hints::peer) of the offer. `tx` returns requests
    /// that sent, read or wrote. `rx` returns requests that received. Both may be the same queue.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the offer has no [connected endpoints](Info::is_msg), or a queue is of another
    ///   domain.
    /// - `ENOSYS`: the provider has no endpoints.
    /// - `ENOMEM`.
    pub fn open(
        domain: &Arc<Domain>,
        info: &Info,
        tx: &Arc<RequestQueue<B, C>>,
        rx: &Arc<RequestQueue<B, C>>,
    ) -> Result<Self, Errno> {
        Self::create(domain, info, tx, Receiving::Own(rx.clone()))
    }

    /// Opens an endpoint with shared receives, like [`open`](Self::open). May sleep.
    ///
    /// # Errors
    ///
    /// The errors of `open`, and:
    ///
    /// - `ENODATA`: the provider has no shared contexts.
    pub fn open_sharing(
        domain: &Arc<Domain>,
        info: &Info,
        tx: &Arc<RequestQueue<B, C>>,
        receives: &Arc<SharedReceives<B, C>>,
    ) -> Result<Self, Errno> {
        Self::create(domain, info, tx, Receiving::Shared(receives.clone()))
    }
}

impl<R, B: Local, C: Send + 'static> MsgEndpoint<Created<R>, B, C> {
    /// Opens an endpoint, whose role depends on the info. May sleep.
    pub(super) fn create(
        domain: &Arc<Domain>,
        info: &Info,
        tx: &Arc<RequestQueue<B, C>>,
        rx: Receiving<B, C>,
    ) -> Result<Self, Errno> {
        if !info.is_msg() {
            return Err(Errno::EINVAL);
        }
        let open = |info| {
            // SAFETY: The domain is open as long as `domain`. The info is valid.
            unsafe { open_by!(domain.as_raw(), endpoint(info; ptr::null_mut())) }
        };
        let ep = match &rx {
            Receiving::Own(_) => open(info.as_raw()),
            Receiving::Shared(_) => info.with_shared_receives(open),
        }?;
        let (receives, how) = rx.bound();
        let uses = Uses {
            conn: None,
            _tx: tx.clone(),
            _rx: rx,
        };
        // INVARIANT: Nothing is posted yet. Only `post` posts with a context.
        let endpoint = Self {
            handle: Handle::new(ep, domain.clone(), uses),
            state: Created(PhantomData),
        };
        let sends = tx.completion_queue().as_raw().cast();
        endpoint.bind(sends, widen_u32(KFI_TRANSMIT))?;
        endpoint.bind(receives, how)?;
        Ok(endpoint)
    }

    /// Binds an open object, which stays open as long as the endpoint, or unbinds on close:
    /// `kfi_ep_bind()`.
    fn bind(&self, what: *mut kfid, flags: u64) -> Result<(), Errno> {
        let fid = self.handle.fid();
        // SAFETY: The endpoint of `fid` is open. All callers pass an open object.
        unsafe { handle::bind(fid, what, flags) }
    }

    /// Sets the handler of the connection, instead of [`wait`](MsgEndpoint::wait). May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the handler's module is being unloaded.
    /// - `EINVAL`: the endpoint has a handler.
    /// - `ENOMEM`.
    pub fn handler<H: ConnectionHandler>(mut self, handler: KBox<H>) -> Result<Self, Errno> {
        let fabric = self.handle.parent().fabric();
        let conn = Conn::open_with(fabric, EVENTS, move |event, cause| {
            handler.connection(match event {
                ConnEvent::Connected(data) => ConnectionEvent::Connected(data),
                ConnEvent::Shutdown => ConnectionEvent::Shutdown,
                ConnEvent::Failed => {
                    let (errno, data) = cause();
                    ConnectionEvent::Failed(errno, data)
                }
                // No endpoint has this event.
                ConnEvent::Request(..) => return,
            });
        })?;
        self.set_conn(conn)?;
        Ok(self)
    }

    fn set_conn(&mut self, conn: Conn) -> Result<(), Errno> {
        self.bind(conn.queue().as_raw().cast(), 0)?;
        self.handle.lent_mut().conn = Some(conn);
        Ok(())
    }

    /// Makes a counter count these transfers as long as it is open: `kfi_ep_bind()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: a counter counts one of these, or the counter is of another domain.
    pub fn count(&self, counter: &Counter, what: Counts) -> Result<(), Errno> {
        self.bind(counter.as_raw().cast(), what.bits())
    }

    /// Enables the endpoint, for receives and for accesses to its regions: `kfi_enable()`. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    /// - `ENODEV`: the device is removed.
    pub fn enable(mut self) -> Result<MsgEndpoint<Enabled<R>, B, C>, Errno> {
        if self.handle.lent().conn.is_none() {
            let conn = Conn::open(self.handle.parent().fabric(), EVENTS)?;
            self.set_conn(conn)?;
        }
        let fid = self.handle.fid();
        // SAFETY: The endpoint of `fid` is open. The command takes no argument.
        unsafe { handle::control(fid, KFI_ENABLE, ptr::null_mut()) }?;
        Ok(self.goes_to(Enabled(PhantomData)))
    }
}

impl<S, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// Returns the endpoint in another state.
    pub(super) fn goes_to<T>(self, state: T) -> MsgEndpoint<T, B, C> {
        MsgEndpoint {
            handle: self.handle,
            state,
        }
    }

    /// Returns the domain of the endpoint. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.handle.parent()
    }

    /// Returns the C object, for calls that Rust doesn't have. It is open as long as `self` lives.
    /// Any context.
    ///
    /// The caller must not close it. Transfers that the caller posts must have the context NULL,
    /// and no completion on success.
    pub fn as_raw(&self) -> *mut kfid_ep {
        self.handle.as_ptr()
    }

    /// Ends the connection and closes the endpoint: `kfi_close()`. Sleeps until all posted
    /// transfers have completed. The queues return their requests.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, `EOPBADSTATE`: the endpoint is still open, and the error has it.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        let state = self.state;
        match self.handle.close() {
            Ok(_uses) => Ok(()),
            Err(error) => Err(error.map(|handle| Self { handle, state })),
        }
    }
}

/// A connecting endpoint, or the refused one.
type ConnectResult<S, B, C> = Result<MsgEndpoint<Connecting, B, C>, Refused<MsgEndpoint<S, B, C>>>;

impl<B: Local, C: Send + 'static> MsgEndpoint<Enabled<Active>, B, C> {
    /// Asks the peer for a connection, with up to 56 bytes of data: `kfi_connect()`. May sleep, but
    /// doesn't wait for the peer.
    ///
    /// # Errors
    ///
    /// All errors have the endpoint, which may try again.
    ///
    /// - `EINVAL`: the offer has no peer, or the data is too long.
    /// - `ENOMEM`.
    pub fn connect(self, data: &[u8]) -> ConnectResult<Enabled<Active>, B, C> {
        self.begin(|ep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The endpoint is open. The call only reads the `len` bytes of `data`.
            unsafe {
                let cm = (*ep).cm;
                op!(cm, connect(ep, ptr::null(), param, len))
            }
        })
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Enabled<Passive>, B, C> {
    /// Accepts the request, with up to 196 bytes of data: `kfi_accept()`. May sleep, but doesn't
    /// wait for the peer.
    ///
    /// # Errors
    ///
    /// All errors have the endpoint, which may try again. Dropping it rejects the request.
    ///
    /// - `EINVAL`: the data is too long.
    /// - `ENOMEM`.
    pub fn accept(self, data: &[u8]) -> ConnectResult<Enabled<Passive>, B, C> {
        self.begin(|ep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The endpoint is open. The call only reads the `len` bytes of `data`.
            unsafe { op!((*ep).cm, accept(ep, param, len)) }
        })
    }
}

impl<R, B: Local, C: Send + 'static> MsgEndpoint<Enabled<R>, B, C> {
    fn begin(
        self,
        call: impl FnOnce(*mut kfid_ep) -> Result<c_int, Errno>,
    ) -> ConnectResult<Enabled<R>, B, C> {
        match call(self.as_raw()).and_then(handle::result) {
            Ok(()) => Ok(self.goes_to(Connecting(()))),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connecting, B, C> {
    /// Sleeps until the endpoint is connected, for at most `msecs` milliseconds if given.
    ///
    /// # Errors
    ///
    /// With the endpoint, which may wait again:
    ///
    /// - `ETIMEDOUT`: the time is over.
    /// - `EINTR`: a signal is pending.
    /// - `ENOSYS`: the endpoint has a [handler](MsgEndpoint::handler).
    ///
    /// Without the endpoint:
    ///
    /// - `ECONNREFUSED`: the peer rejected, perhaps with data, or nobody listens there.
    /// - `ECONNRESET`: the connection has ended already.
    /// - The errors of the provider.
    pub fn wait(
        mut self,
        msecs: Option<u32>,
    ) -> Result<MsgEndpoint<Connected, B, C>, ConnectError<Self>> {
        let Some(conn) = &mut self.handle.lent_mut().conn else {
            return Err(ConnectError::pending(Errno::ENOSYS, self));
        };
        match conn.wait(msecs) {
            Ok(Some(ConnEvent::Connected(data))) => Ok(self.goes_to(Connected { data })),
            Ok(Some(ConnEvent::Failed)) => {
                let (errno, data) = conn.failure();
                Err(ConnectError::failed(errno, data))
            }
            Ok(Some(_)) => Err(ConnectError::failed(Errno::ECONNRESET, KVec::new())),
            Ok(None) => Err(ConnectError::pending(Errno::ETIMEDOUT, self)),
            Err(errno) => Err(ConnectError::pending(errno, self)),
        }
    }

    /// Returns the connected endpoint, after its [handler](MsgEndpoint::handler) got
    /// [`Connected`](super::ConnectionEvent::Connected). May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the endpoint isn't connected. The error has it.
    pub fn established(self) -> Result<MsgEndpoint<Connected, B, C>, Refused<Self>> {
        match peer(self.as_raw()) {
            Ok(_) => Ok(self.goes_to(Connected { data: KVec::new() })),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}

/// Returns the peer's address of an open endpoint: `kfi_getpeer()`.
fn peer(ep: *mut kfid_ep) -> Result<SocketAddr, Errno> {
    handle::address(|address, len| {
        // SAFETY: All callers pass an open endpoint. `address` has `*len` bytes.
        unsafe { op!((*ep).cm, getpeer(ep, address, len)) }
    })
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// Returns the data that the peer sent when it accepted, if [`wait`](MsgEndpoint::wait)
    /// returned this endpoint. Any context.
    pub fn data(&self) -> &[u8] {
        &self.state.data
    }

    /// Returns the peer's address: `kfi_getpeer()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection has ended.
    pub fn peer(&self) -> Result<SocketAddr, Errno> {
        peer(self.as_raw())
    }

    /// Ends the connection: `kfi_shutdown()`. Current transfers fail, and both sides get an event.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection has ended.
    pub fn shutdown(&self) -> Result<(), Errno> {
        let ep = self.as_raw();
        // SAFETY: The endpoint is open as long as `self`.
        handle::result(unsafe { op!((*ep).cm, shutdown(ep, 0)) }?)
    }

    /// Sleeps until the connection has ended, for at most `msecs` milliseconds if given. Only one
    /// waiter gets the event.
    ///
    /// # Errors
    ///
    /// - `ETIMEDOUT`: the time is over.
    /// - `EINTR`: a signal is pending.
    /// - `ENOSYS`: the endpoint has a [handler](MsgEndpoint::handler).
    pub fn wait_shutdown(&self, msecs: Option<u32>) -> Result<(), Errno> {
        let conn = self.handle.lent().conn.as_ref().ok_or(Errno::ENOSYS)?;
        loop {
            match conn.wait(msecs)? {
                Some(ConnEvent::Shutdown) => return Ok(()),
                // `established` leaves this event in the queue.
                Some(ConnEvent::Connected(_)) => (),
                Some(_) => return Err(Errno::EIO),
                None => return Err(Errno::ETIMEDOUT),
            }
        }
    }
}
