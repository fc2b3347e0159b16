// SPDX-License-Identifier: GPL-2.0

//! Work requests on the heap, each with its own completion.
//!
//! A waiter on the stack waits for its requests. A request on the heap has no
//! waiter: its completion calls a handler.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use crate::{
    cm::Endpoint,
    errno,
    outstanding::{
        End,
        Outstanding,
        Owner, //
    },
    prelude::*,
    qp::RawQp,
    srq::Srq,
    wc::{
        Arrival,
        CqId,
        Invalidated,
        WrError, //
    },
    wr::{
        Receive,
        WorkRequest, //
    }, //
};
use core::mem;
use kernel::container_of;

/// A request on the heap, with what is to be called when it has ended.
///
/// Each request that has been posted ends exactly once: it completes, or its queue pair is
/// destroyed before, or could not even be destroyed.
///
/// # Examples
///
/// ```ignore
/// let request = Request::new(
///     write,
///     |ended: CompletedRequest<'_, _>| match ended.result {
///         Ok(_) => pr_info!("written\n"),
///         Err(error) => pr_warn!("not written: {error}\n"),
///     },
///     GFP_ATOMIC,
/// )?;
/// if let Err(refused) = endpoint.post(request) {
///     // It was not posted, and comes back with all that it refers to.
///     return Err(refused.error);
/// }
/// ```
pub struct Request<W, F> {
    owner: Owner,
    request: W,
    then: F,
}

/// A handler for the completion of a request. Functions of one argument implement it.
pub trait CompletionHandler<W>: Send + 'static {
    /// Handles the completion of the request.
    fn ended(self, ended: CompletedRequest<'_, W>);
}

impl<W, F: FnOnce(CompletedRequest<'_, W>) + Send + 'static> CompletionHandler<W> for F {
    fn ended(self, ended: CompletedRequest<'_, W>) {
        self(ended)
    }
}

/// A request that has ended. Made by this crate only: it is believed.
#[non_exhaustive]
pub struct CompletedRequest<'a, W> {
    /// How; with what has come, if it was a receive.
    pub result: Result<Arrival, WrError>,
    /// The vendor's error code.
    pub vendor_error: u32,
    /// The key of this side that the peer had the device invalidate, as proof of that.
    pub invalidated: Option<Invalidated<'a>>,
    /// The completion queue that told of it, if one has.
    pub at: Option<CqId>,
    /// The request, with what it refers to; [`None`] if that was leaked, since the device may use
    /// it at any time.
    pub request: Option<W>,
}

/// A request that was not posted.
pub struct NotPosted<W, F> {
    /// `EAGAIN` if as many as the queue is deep are under way; `ENOTCONN` if the queue pair is broken;
    /// what the driver said.
    pub error: Error,
    /// The request.
    pub request: KBox<Request<W, F>>,
}

impl<W, F> NotPosted<W, F> {
    /// Returns the error and the completion handler, and drops the request.
    pub fn into_then(self) -> (Error, F) {
        (self.error, KBox::into_inner(self.request).then)
    }
}

impl<W: Send + 'static, F: CompletionHandler<W>> Request<W, F> {
    // SAFETY: `ended` is called once, with a pointer to the member of a box that `post` has given away.
    const OWNER: Owner = unsafe { Owner::new(Self::ended) };

    /// Creates a request. Does not sleep if `flags` do not allow it.
    ///
    /// When it has ended, `then` is told.
    pub fn new(request: W, then: F, flags: kernel::alloc::Flags) -> Result<KBox<Self>> {
        Self::try_new(request, then, flags).map_err(|_| ENOMEM)
    }

    /// Creates a request like [`Request::new`]. Without memory it drops `request` and returns
    /// `then`.
    pub fn try_new(request: W, then: F, flags: kernel::alloc::Flags) -> Result<KBox<Self>, F> {
        let Ok(room) = KBox::new_uninit(flags) else {
            return Err(then);
        };
        let this = Self {
            owner: Self::OWNER,
            request,
            then,
        };
        Ok(KBox::write(room, this))
    }

    /// Handles the end of the request.
    ///
    /// # Safety
    ///
    /// `owner` must be the member of a box that was given away for this.
    unsafe fn ended(owner: NonNull<Owner>, end: &End<'_>) {
        // SAFETY: By this function's requirements `owner` is the member of a box that was given
        // away for this.
        let this = unsafe { KBox::from_raw(container_of!(owner.as_ptr(), Self, owner)) };
        let this = KBox::into_inner(this);
        let completion;
        let (mut vendor_error, mut invalidated, mut at) = (0, None, None);
        let (result, request) = match end {
            End::Completed(told) => {
                completion = told.read();
                (vendor_error, invalidated) = (completion.vendor_error, completion.invalidated());
                at = Some(completion.at);
                let result = completion.status.to_result();
                (result.map(|()| completion.arrival), Some(this.request))
            }
            End::Refused(error) => (Err(WrError::Post(*error)), Some(this.request)),
            End::Gone => (Err(WrError::TimedOut), Some(this.request)),
            End::Lost => {
                // The device may use at any time what it refers to.
                mem::forget(this.request);
                (Err(WrError::Lost), None)
            }
        };
        this.then.ended(CompletedRequest {
            result,
            vendor_error,
            invalidated,
            at,
            request,
        });
    }
}

/// Posts a request by `post`, which gets the request and its `cqe`. After an error the request was
/// not posted, and no other task may complete it. Any context.
///
/// # Safety
///
/// - If `post` succeeds, the request with the `cqe` must be posted, or [refused](Outstanding::refuse). Its
///   completion must end before `queue` is freed.
/// - If `post` fails, no completion may refer to the `cqe`.
/// - `post` may use the request until it is posted.
pub(crate) unsafe fn post<W, F, T>(
    queue: &Outstanding,
    request: KBox<Request<W, F>>,
    post: impl FnOnce(*mut W, *mut rdma_bindings::ib_cqe) -> Result<T>,
) -> Result<T, NotPosted<W, F>> {
    let request = KBox::into_raw(request);
    // SAFETY: `request` comes from a box, so it is valid, and so are its members.
    let (wr, owner) = unsafe {
        (
            &raw mut (*request).request,
            NonNull::new_unchecked(&raw mut (*request).owner),
        )
    };
    // SAFETY: `owner` is a member of the box, which `Request::ended` frees when it is notified.
    let slot = unsafe { queue.take_slot(owner) };
    let posted =
        slot.and_then(|slot| post(wr, slot.cqe.get()).inspect_err(|_| queue.put_back(slot)));
    posted.map_err(|error| {
        // SAFETY: The request was not posted, so `Request::ended` does not free the box.
        let request = unsafe { KBox::from_raw(request) };
        NotPosted { error, request }
    })
}

impl Endpoint {
    /// Posts a send request. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the endpoint is not connected yet.
    /// - See [`NotPosted`].
    pub fn post<K, F>(
        &self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        if !self.sends.load(Acquire) {
            let error = errno::enotconn();
            return Err(NotPosted { error, request });
        }
        let RawQp {
            qp, sends, inline, ..
        } = &self.qp.raw;
        let send = |wr: *mut WorkRequest<K>, cqe| {
            // SAFETY: `wr` is valid until it is posted, by the contract of `post`. `qp` is valid as long as
            // `self`. The box owns the memory of the request.
            unsafe { (*wr).post(qp.as_ptr(), cqe, *inline) }
        };
        // SAFETY: `self` frees `sends` after the completions of its queue pair.
        unsafe { post(sends, request, send) }
    }

    /// Posts a receive request. Any context.
    pub fn post_receive<K, F>(
        &self,
        request: KBox<Request<Receive<K>, F>>,
    ) -> Result<(), NotPosted<Receive<K>, F>> {
        let RawQp { qp, receives, .. } = &self.qp.raw;
        let receive = |wr: *mut Receive<K>, cqe| {
            // SAFETY: `wr` is valid until it is posted, by the contract of `post`.
            let copy = unsafe { (*wr).copy(cqe) }?;
            // SAFETY: `qp` is valid as long as `self`. The box owns the memory of the request.
            to_result(unsafe { rdma_bindings::rdma_helper_post_recv(qp.as_ptr(), &copy) })
        };
        // SAFETY: `self` frees `receives` after the completions of its queue pair.
        unsafe { post(receives, request, receive) }
    }
}

impl Srq {
    /// Posts a receive request, for whichever queue pair takes it. Any context.
    pub fn post<K, F>(
        &self,
        request: KBox<Request<Receive<K>, F>>,
    ) -> Result<(), NotPosted<Receive<K>, F>> {
        let srq = self.as_raw();
        let receive = |wr: *mut Receive<K>, cqe| {
            // SAFETY: `wr` is valid until it is posted, by the contract of `post`.
            let copy = unsafe { (*wr).copy(cqe) }?;
            // SAFETY: `srq` is valid as long as `self`, and each queue pair that shares it has a
            // reference to `self`. The box owns the memory of the request.
            to_result(unsafe { rdma_bindings::rdma_helper_post_srq_recv(srq, &copy) })
        };
        // SAFETY: All completion queues of queue pairs that share `self` keep its slots.
        unsafe { post(self.queue(), request, receive) }
    }
}
