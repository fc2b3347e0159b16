// SPDX-License-Identifier: GPL-2.0

//! Receive contexts that endpoints share.

use super::{
    call::{
        self,
        op, //
    },
    handle::{
        close_last,
        Handle, //
    },
    CloseError,
    Counter,
    Counts,
    Domain,
    Local,
    RequestQueue, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32,
    task::NoIo, //
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_ops_domain,
    kfi_rx_attr,
    kfid_ep,
    KFI_RECV, //
};

/// Receives that any number of endpoints of a domain take theirs from, whichever has a message; their
/// requests have memory of type `B` and a context of type `C`.
///
/// An endpoint shares it from the [beginning](super::MsgEndpoint::open_sharing) on, and keeps it open.
/// What is posted comes back by the one queue of all of them, which doesn't tell who has received it: what
/// peers send has to. It stays posted when an endpoint ends, unless that has begun with it; what nobody has
/// taken comes back when it is closed, with the last reference, where that may sleep.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{
///     Created, Domain, Incoming, MsgEndpoint, Passive, Request, RequestQueue, SharedReceives,
/// };
///
/// type Receives = Arc<SharedReceives<KVec<u8>>>;
///
/// /// Room for 64 messages, whoever sends them.
/// fn receives(domain: &Arc<Domain>, queue: &Arc<RequestQueue<KVec<u8>>>) -> Result<Receives> {
///     let receives = SharedReceives::open(domain, queue, 64)?;
///     for _ in 0..64 {
///         receives.recv(Request::new(KVec::from_elem(0, 4096, GFP_KERNEL)?, ())?)?;
///     }
///     Ok(receives)
/// }
///
/// /// An endpoint for one more of those who send.
/// fn answer(
///     request: Incoming,
///     domain: &Arc<Domain>,
///     queue: &Arc<RequestQueue<KVec<u8>>>,
///     receives: &Receives,
/// ) -> Result<MsgEndpoint<Created<Passive>, KVec<u8>>> {
///     Ok(request.endpoint_sharing(domain, queue, receives)?)
/// }
/// ```
///
/// # Invariants
///
/// What is posted on the context has the context of a request of type `Request<B, C>`.
pub struct SharedReceives<B: Local, C: Send + 'static = ()> {
    handle: Handle<kfid_ep, Arc<Domain>, Arc<RequestQueue<B, C>>>,
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// `kfi_srx_context()`: opens a context with room for so many receives, which come back by `queue`. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has none, see [`Info::shares_receives`](super::Info::shares_receives).
    /// - `ENODATA`: more room than it can have.
    /// - `EINVAL`: the queue is of another domain.
    /// - `ENODEV`: the device is gone.
    /// - `ENOMEM`.
    pub fn open(
        domain: &Arc<Domain>,
        queue: &Arc<RequestQueue<B, C>>,
        size: usize,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let (raw, mut srx) = (domain.as_raw(), ptr::null_mut());
        let mut attr = kfi_rx_attr {
            size,
            ..Default::default()
        };
        // SAFETY: `raw` is open as long as `domain` is there; `attr` and `srx` are locals.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_ops_domain,
                srx_ctx(raw, &mut attr, &mut srx, ptr::null_mut())
            )
        }?;
        // INVARIANT: Nothing was posted yet, and `post` is what posts.
        let receives = Self {
            handle: Handle::new(call::opened(ret, srx)?, domain.clone(), queue.clone()),
        };
        let (fid, cq) = (receives.handle.fid(), queue.completion_queue().as_raw());
        // SAFETY: Both are open; the queue as long as the context, which keeps it.
        unsafe { call::bind(fid, cq.cast(), widen_u32(KFI_RECV)) }?;
        Ok(Arc::new(receives, GFP_KERNEL)?)
    }

    /// `kfi_ep_bind()`: has what is received counted, too, as long as the counter is open. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is counted already, or the counter is of another domain.
    pub fn count(&self, counter: &Counter) -> Result<(), Errno> {
        // SAFETY: Both are open; the counter can be closed at any time.
        unsafe {
            call::bind(
                self.handle.fid(),
                counter.as_raw().cast(),
                Counts::RECVS.bits(),
            )
        }
    }

    /// Returns the domain that it was opened in. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.handle.parent()
    }

    /// The context as C has it, as long as `self` is there.
    pub(super) fn as_raw(&self) -> *mut kfid_ep {
        self.handle.as_ptr()
    }

    /// `kfi_close()`: gives up a reference; with the last one closes the context and tells whether that
    /// worked. What nobody has taken has ended then, and can be read from the queue. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, with nothing given back: others have references, endpoints perhaps.
    pub fn close(receives: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(receives, |receives| &mut receives.handle)
    }
}
