// SPDX-License-Identifier: GPL-2.0

//! Receive contexts that endpoints share.

use super::*;
use kfi_bindings::{
    kfi_rx_attr,
    KFI_RECV, //
};

/// A shared receive context: receives for the messages of any number of endpoints of a domain. The
/// requests have memory of type `B` and a context of type `C`.
///
/// An endpoint uses the context from its [opening](super::MsgEndpoint::open_sharing), and keeps it
/// open. One queue returns all requests. It doesn't tell which endpoint received a message, so the
/// peers' messages have to. If an endpoint is closed, only its started receives complete. Closing
/// the context completes the others. Dropping the last reference closes the context, and may sleep.
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
/// /// Posts receives for 64 messages of any peer.
/// fn receives(domain: &Arc<Domain>, queue: &Arc<RequestQueue<KVec<u8>>>) -> Result<Receives> {
///     let receives = SharedReceives::open(domain, queue, 64)?;
///     for _ in 0..64 {
///         receives.recv(Request::new(KVec::from_elem(0, 4096, GFP_KERNEL)?, ())?)?;
///     }
///     Ok(receives)
/// }
///
/// /// Opens an endpoint for one more peer.
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
/// Everything posted on the context has the context of a request of type `Request<B, C>`.
pub struct SharedReceives<B: Local, C: Send + 'static = ()> {
    handle: Handle<kfid_ep, Arc<Domain>, Arc<RequestQueue<B, C>>>,
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// Opens a context for `size` receives, which `queue` returns: `kfi_srx_context()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has no shared contexts ([`Info::shares_receives`]).
    /// - `ENODATA`: the provider doesn't support that many receives.
    /// - `EINVAL`: the queue is of another domain.
    /// - `ENODEV`: the device is removed.
    /// - `ENOMEM`.
    pub fn open(
        domain: &Arc<Domain>,
        queue: &Arc<RequestQueue<B, C>>,
        size: usize,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let mut attr = kfi_rx_attr {
            size,
            ..Default::default()
        };
        // SAFETY: The domain is open as long as `domain`. `attr` is a local.
        let srx = unsafe { open_by!(domain.as_raw(), srx_ctx(&mut attr; ptr::null_mut())) }?;
        // INVARIANT: Nothing is posted yet. Only `post` posts on the context.
        let receives = Self {
            handle: Handle::new(srx, domain.clone(), queue.clone()),
        };
        let (fid, cq) = (receives.handle.fid(), queue.completion_queue().as_raw());
        // SAFETY: The context is open. So is the queue, to which the context has a reference.
        unsafe { handle::bind(fid, cq.cast(), widen_u32(KFI_RECV)) }?;
        Ok(Arc::new(receives, GFP_KERNEL)?)
    }

    /// Makes a counter count received messages as long as it is open: `kfi_ep_bind()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the context has a counter, or the counter is of another domain.
    pub fn count(&self, counter: &Counter) -> Result<(), Errno> {
        // SAFETY: Both are open. Closing the counter unbinds it.
        unsafe {
            handle::bind(
                self.handle.fid(),
                counter.as_raw().cast(),
                Counts::RECVS.bits(),
            )
        }
    }

    /// Returns the domain of the context. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.handle.parent()
    }

    /// Returns the C object. It is open as long as `self` lives.
    pub(super) fn as_raw(&self) -> *mut kfid_ep {
        self.handle.as_ptr()
    }

    /// Drops this reference. Closes the context if it was the last one: `kfi_close()`. May sleep.
    ///
    /// Receives without a message complete then, and can be read from the queue.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, without the context: others have references, for example endpoints.
    pub fn close(receives: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(receives, |receives| &mut receives.handle)
    }
}
