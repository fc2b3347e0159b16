// SPDX-License-Identifier: GPL-2.0

//! Connected endpoints, step by step.

use super::{
    call::{
        self,
        op, //
    },
    conn::Conn,
    connection::Told,
    handle::Handle,
    Active,
    CloseError,
    ConnectionHandler,
    Counter,
    Counts,
    Created,
    Domain,
    Enabled,
    Info,
    Local,
    RequestQueue,
    SharedReceives, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_ops_domain,
    kfid,
    kfid_ep,
    KFI_ENABLE,
    KFI_RECV,
    KFI_TRANSMIT, //
};

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
        let conn = Conn::open_with(self.handle.parent().fabric(), EVENTS, Told(handler))?;
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
