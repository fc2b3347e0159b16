// SPDX-License-Identifier: GPL-2.0

//! Connected endpoints: their states, and connecting them.

use super::{
    call::{
        self,
        op, //
    },
    conn::{
        Conn,
        ConnEvent,
        HandlerAdapter, //
    },
    handle::Handle,
    CloseError, ConnectError, ConnectionHandler, Counter, Counts, Domain, Info, Local, Refused,
    RequestQueue, SharedReceives, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32, //
};
use core::{
    marker::PhantomData,
    net::SocketAddr,
    ptr, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_ops_cm,
    kfi_ops_domain,
    kfid,
    kfid_ep,
    KFI_ENABLE,
    KFI_RECV,
    KFI_TRANSMIT, //
};

/// An endpoint that asks for a connection.
pub enum Active {}
/// An endpoint that answers a request for one.
pub enum Passive {}

/// A new endpoint: things can be bound to it.
pub struct Created<R>(pub(super) PhantomData<R>);
/// An endpoint that can be connected.
pub struct Enabled<R>(pub(super) PhantomData<R>);
/// An endpoint that waits for its peer.
pub struct Connecting(pub(super) ());
/// An endpoint that had a connection at least once.
pub struct Connected {
    pub(super) data: KVec<u8>,
}

/// States in which receives may be posted.
pub trait Receives: sealed::Sealed {}

mod sealed {
    /// Of the states here only.
    pub trait Sealed {}
}

impl<R> sealed::Sealed for Enabled<R> {}
impl sealed::Sealed for Connecting {}
impl sealed::Sealed for Connected {}
impl<R> Receives for Enabled<R> {}
impl Receives for Connecting {}
impl Receives for Connected {}

/// An endpoint that is connected to a peer (`KFI_EP_MSG`), in a state `S`; its requests have memory of
/// type `B` and a context of type `C`.
///
/// It goes from [`Created`] to [`Enabled`], [`Connecting`](super::Connecting) and
/// [`Connected`](super::Connected), each step consuming the one
/// before. An attempt that fails, and a connection that ends, end the endpoint: what is left is dropping
/// it, and opening another one. Receives can be posted as soon as it is enabled, all else needs a
/// connection.
///
/// Dropping or closing it ends the connection, and sleeps until all that was posted has ended: it can be
/// read from the queues of requests then. Its handler can't do that.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Connected, Domain, Info, MsgEndpoint, Request, RequestQueue};
///
/// type Queue = Arc<RequestQueue<KVec<u8>>>;
///
/// /// Connects to the peer that the info was asked for, and says hello.
/// fn hello(domain: &Arc<Domain>, info: &Info, queue: &Queue) -> Result {
///     let endpoint = MsgEndpoint::open(domain, info, queue, queue)?.enable()?;
///     // Who will answer needs somewhere to put it.
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
/// What is posted on the endpoint has the context of a request of type `Request<B, C>`, or none.
pub struct MsgEndpoint<S, B: Local, C: Send + 'static = ()> {
    pub(super) handle: Handle<kfid_ep, Arc<Domain>, Uses<B, C>>,
    pub(super) state: S,
}

/// What an endpoint uses as long as it is open; dropped in this order.
pub(super) struct Uses<B: Local, C: Send + 'static> {
    pub(super) conn: Option<Conn>,
    _tx: Arc<RequestQueue<B, C>>,
    _rx: Receiving<B, C>,
}

/// Where the receives of an endpoint are.
pub(super) enum Receiving<B: Local, C: Send + 'static> {
    /// Its own, which come back by this queue.
    Own(Arc<RequestQueue<B, C>>),
    /// Those of a context that it shares.
    Shared(Arc<SharedReceives<B, C>>),
}

impl<B: Local, C: Send + 'static> Receiving<B, C> {
    /// What an endpoint is bound to, and how.
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

/// How many events an endpoint has in its life: that it is connected, and isn't any more.
const EVENTS: usize = 2;

impl<B: Local, C: Send + 'static> MsgEndpoint<Created<Active>, B, C> {
    /// `kfi_endpoint()`: opens the endpoint that an offer describes, in its domain, to be connected to the
    /// [peer](super::Hints::peer) of the offer. Requests come back by `tx` when they have sent, read or
    /// written, and by `rx` when they have received; these may be the same. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is no [offer](Info::is_msg) of a connected endpoint; or a queue is of another domain.
    /// - `ENOSYS`: the provider has none.
    /// - `ENOMEM`.
    pub fn open(
        domain: &Arc<Domain>,
        info: &Info,
        tx: &Arc<RequestQueue<B, C>>,
        rx: &Arc<RequestQueue<B, C>>,
    ) -> Result<Self, Errno> {
        Self::create(domain, info, tx, Receiving::Own(rx.clone()))
    }

    /// The same, for an endpoint that shares its receives with others: messages take those that are posted
    /// there, whichever endpoint they come by. May sleep.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), and:
    ///
    /// - `ENODATA`: the provider has no such contexts.
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
    /// Opens an endpoint, for which of both is up to the info. May sleep.
    pub(super) fn create(
        domain: &Arc<Domain>,
        info: &Info,
        tx: &Arc<RequestQueue<B, C>>,
        rx: Receiving<B, C>,
    ) -> Result<Self, Errno> {
        if !info.is_msg() {
            return Err(Errno::EINVAL);
        }
        let (raw, mut ep) = (domain.as_raw(), ptr::null_mut());
        let mut open = |info| {
            // SAFETY: `raw` is open as long as `domain` is there; the info is valid, and `ep` is a
            // local.
            unsafe {
                op!(
                    (*raw).ops,
                    kfi_ops_domain,
                    endpoint(raw, info, &mut ep, ptr::null_mut())
                )
            }
        };
        let ret = match &rx {
            Receiving::Own(_) => open(info.as_raw()),
            Receiving::Shared(_) => info.with_shared_receives(open),
        }?;
        let (receives, how) = rx.bound();
        let uses = Uses {
            conn: None,
            _tx: tx.clone(),
            _rx: rx,
        };
        // INVARIANT: Nothing was posted yet, and `post` is what posts with a context.
        let endpoint = Self {
            handle: Handle::new(call::opened(ret, ep)?, domain.clone(), uses),
            state: Created(PhantomData),
        };
        let sends = tx.completion_queue().as_raw().cast();
        endpoint.bind(sends, widen_u32(KFI_TRANSMIT))?;
        endpoint.bind(receives, how)?;
        Ok(endpoint)
    }

    /// `kfi_ep_bind()`; what is bound stays open as long as the endpoint, or can be closed.
    fn bind(&self, what: *mut kfid, flags: u64) -> Result<(), Errno> {
        let fid = self.handle.fid();
        // SAFETY: The endpoint of `fid` is open, and so is `what`.
        unsafe { call::bind(fid, what, flags) }
    }

    /// Whom to tell of the connection, instead of [waiting](MsgEndpoint::wait) for it. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the handler's module is being unloaded.
    /// - `EINVAL`: there is one already.
    /// - `ENOMEM`.
    pub fn handler<H: ConnectionHandler>(mut self, handler: KBox<H>) -> Result<Self, Errno> {
        let conn = Conn::open_with(
            self.handle.parent().fabric(),
            EVENTS,
            HandlerAdapter(handler),
        )?;
        self.set_conn(conn)?;
        Ok(self)
    }

    fn set_conn(&mut self, conn: Conn) -> Result<(), Errno> {
        self.bind(conn.queue().as_raw().cast(), 0)?;
        self.handle.lent_mut().conn = Some(conn);
        Ok(())
    }

    /// `kfi_ep_bind()`: has these transfers counted, too, as long as the counter is open. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: one of these is counted already, or the counter is of another domain.
    pub fn count(&self, counter: &Counter, what: Counts) -> Result<(), Errno> {
        self.bind(counter.as_raw().cast(), what.bits())
    }

    /// `kfi_enable()`: lets receives be posted, and peers into the regions that are bound to it. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    /// - `ENODEV`: the device is gone.
    pub fn enable(mut self) -> Result<MsgEndpoint<Enabled<R>, B, C>, Errno> {
        if self.handle.lent().conn.is_none() {
            let conn = Conn::open(self.handle.parent().fabric(), EVENTS)?;
            self.set_conn(conn)?;
        }
        let fid = self.handle.fid();
        // SAFETY: The endpoint of `fid` is open, and the command takes no argument.
        unsafe { call::control(fid, KFI_ENABLE, ptr::null_mut()) }?;
        Ok(self.goes_to(Enabled(PhantomData)))
    }
}

impl<S, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// The next step.
    pub(super) fn goes_to<T>(self, state: T) -> MsgEndpoint<T, B, C> {
        MsgEndpoint {
            handle: self.handle,
            state,
        }
    }

    /// Returns the domain that it was opened in. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.handle.parent()
    }

    /// Returns the endpoint as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed; what is posted on it has the context NULL, and no completion if
    /// it ends well. Any context.
    pub fn as_raw(&self) -> *mut kfid_ep {
        self.handle.as_ptr()
    }

    /// `kfi_close()`: ends the connection, closes the endpoint and tells whether that worked. Sleeps until
    /// all that was posted has ended, which can be read from its queues then.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, `EOPBADSTATE`: it is still open, and comes back.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        let state = self.state;
        match self.handle.close() {
            Ok(_uses) => Ok(()),
            Err(error) => Err(error.map(|handle| Self { handle, state })),
        }
    }
}

/// An endpoint whose attempt to be connected has begun, or the one that was refused to.
type ConnectResult<S, B, C> = Result<MsgEndpoint<Connecting, B, C>, Refused<MsgEndpoint<S, B, C>>>;

impl<B: Local, C: Send + 'static> MsgEndpoint<Enabled<Active>, B, C> {
    /// `kfi_connect()`: asks the peer for a connection, with at most 56 bytes for it to read. May sleep, but
    /// doesn't wait for the peer.
    ///
    /// # Errors
    ///
    /// The endpoint comes back, and may try again.
    ///
    /// - `EINVAL`: no peer was asked for, or these are too many bytes.
    /// - `ENOMEM`.
    pub fn connect(self, data: &[u8]) -> ConnectResult<Enabled<Active>, B, C> {
        self.begin(|ep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The endpoint is open, and the data are valid for the call.
            unsafe {
                let cm = (*ep).cm;
                op!(cm, kfi_ops_cm, connect(ep, ptr::null(), param, len))
            }
        })
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Enabled<Passive>, B, C> {
    /// `kfi_accept()`: accepts the request, with at most 196 bytes for the peer to read. May sleep, but
    /// doesn't wait for the peer.
    ///
    /// # Errors
    ///
    /// The endpoint comes back, and may try again. Dropping it rejects.
    ///
    /// - `EINVAL`: too many bytes.
    /// - `ENOMEM`.
    pub fn accept(self, data: &[u8]) -> ConnectResult<Enabled<Passive>, B, C> {
        self.begin(|ep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The endpoint is open, and the data are valid for the call.
            unsafe { op!((*ep).cm, kfi_ops_cm, accept(ep, param, len)) }
        })
    }
}

impl<R, B: Local, C: Send + 'static> MsgEndpoint<Enabled<R>, B, C> {
    fn begin(
        self,
        call: impl FnOnce(*mut kfid_ep) -> Result<c_int, Errno>,
    ) -> ConnectResult<Enabled<R>, B, C> {
        match call(self.as_raw()).and_then(call::result) {
            Ok(()) => Ok(self.goes_to(Connecting(()))),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connecting, B, C> {
    /// Waits for the connection, so many milliseconds or for ever. Sleeps.
    ///
    /// # Errors
    ///
    /// With the endpoint, which may be waited for again, or dropped:
    ///
    /// - `ETIMEDOUT`: it took longer than that.
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: it has a [handler](MsgEndpoint::handler), which is told.
    ///
    /// Without it:
    ///
    /// - `ECONNREFUSED`: the peer has rejected, perhaps with some bytes; or nobody listens there.
    /// - `ECONNRESET`: the connection has ended before this side knew of it.
    /// - Others of the provider.
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

    /// Takes the step to a connected endpoint, after its [handler](MsgEndpoint::handler) was told so. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: it isn't connected, or not any more; it comes back.
    pub fn established(self) -> Result<MsgEndpoint<Connected, B, C>, Refused<Self>> {
        match peer(self.as_raw()) {
            Ok(_) => Ok(self.goes_to(Connected { data: KVec::new() })),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}

/// `kfi_getpeer()` of an open endpoint.
fn peer(ep: *mut kfid_ep) -> Result<SocketAddr, Errno> {
    call::address(|address, len| {
        // SAFETY: The endpoint is open, and the others are valid for the call.
        unsafe { op!((*ep).cm, kfi_ops_cm, getpeer(ep, address, len)) }
    })
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// Returns what the peer has sent with its acceptance, if this side has [waited](MsgEndpoint::wait) for
    /// it. Any context.
    pub fn data(&self) -> &[u8] {
        &self.state.data
    }

    /// `kfi_getpeer()`: returns the peer's address. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection has ended.
    pub fn peer(&self) -> Result<SocketAddr, Errno> {
        peer(self.as_raw())
    }

    /// `kfi_shutdown()`: ends the connection. What is under way fails, and both sides are told. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: it has ended.
    pub fn shutdown(&self) -> Result<(), Errno> {
        let ep = self.as_raw();
        // SAFETY: The endpoint is open.
        call::result(unsafe { op!((*ep).cm, kfi_ops_cm, shutdown(ep, 0)) }?)
    }

    /// Waits until the connection has ended, so many milliseconds or for ever. Sleeps. One who waits is
    /// told.
    ///
    /// # Errors
    ///
    /// - `ETIMEDOUT`: it took longer than that.
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: the endpoint has a [handler](MsgEndpoint::handler), which is told.
    pub fn wait_shutdown(&self, msecs: Option<u32>) -> Result<(), Errno> {
        let conn = self.handle.lent().conn.as_ref().ok_or(Errno::ENOSYS)?;
        loop {
            match conn.wait(msecs)? {
                Some(ConnEvent::Shutdown) => return Ok(()),
                // What was established without waiting.
                Some(ConnEvent::Connected(_)) => (),
                Some(_) => return Err(Errno::EIO),
                None => return Err(Errno::ETIMEDOUT),
            }
        }
    }
}
