// SPDX-License-Identifier: GPL-2.0

//! Work requests on the heap, each with its own completion.
//!
//! A waiter on the stack waits for its requests. A request on the heap has no
//! waiter: its completion calls a handler.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use kernel::{
    container_of,
    prelude::*,
    types::Opaque, //
};

use core::{
    mem,
    ptr::NonNull, //
};

use crate::{
    credits::Credit,
    errno,
    outstanding::{
        End,
        Outstanding,
        Owner, //
    },
    qp::{
        Init,
        Qp,
        ReadyToReceive,
        ReadyToSend, //
    },
    raw_wr::RawWr,
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
/// if let Err(refused) = qp.post(request) {
///     // It was not posted, and comes back with all that it refers to.
///     return Err(refused.error);
/// }
/// ```
pub struct Request<W, F> {
    owner: Owner,
    /// For when several are posted in one go.
    room: Opaque<rdma_bindings::rdma_helper_room>,
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

/// A request that a queue can post.
pub(crate) trait Posted {
    /// Returns the structure to post.
    fn raw(&self) -> RawWr;
}

impl<K> Posted for WorkRequest<K> {
    fn raw(&self) -> RawWr {
        WorkRequest::raw(self)
    }
}

impl<K> Posted for Receive<K> {
    fn raw(&self) -> RawWr {
        Receive::raw(self)
    }
}

impl<W: Send + 'static, F: CompletionHandler<W>> Request<W, F> {
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
            // SAFETY: `ended` is called with a pointer to the member of a box that `post` has given
            // away, once.
            owner: unsafe { Owner::new(Self::ended) },
            room: Opaque::uninit(),
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

/// Posts a request. Any context.
///
/// # Safety
///
/// `qp` must be valid, and its completions must end before `queue` is freed.
pub(super) unsafe fn post<W: Posted, F>(
    qp: *mut rdma_bindings::ib_qp,
    queue: &Outstanding,
    request: KBox<Request<W, F>>,
) -> Result<(), NotPosted<W, F>> {
    give(queue, request, |given, credit, owner, raw, _room| {
        // SAFETY: `qp` is valid by the function's contract. The box, which owns the memory of the
        // request, is freed by the handler of its completion.
        unsafe { given.post(qp, credit, owner, raw) }
    })
}

/// The room of a request to be posted in a chain, and its `cqe`.
pub(crate) type PreparedWr = (
    NonNull<rdma_bindings::rdma_helper_room>,
    NonNull<rdma_bindings::ib_cqe>,
);

/// Prepares a request for posting in a chain, and returns its room.
///
/// # Safety
///
/// - The caller must post the room, or [refuse](Outstanding::refuse) it.
/// - If it is posted, `queue` must stay valid until its completions have been handled.
pub(crate) unsafe fn stage<W: Posted, F>(
    queue: &Outstanding,
    request: KBox<Request<W, F>>,
) -> Result<PreparedWr, NotPosted<W, F>> {
    let mut staged = (NonNull::dangling(), NonNull::dangling());
    give(queue, request, |queue, credit, owner, raw, room| {
        // SAFETY: `owner` is part of the box, which is freed by the handler of its completion.
        let cqe = unsafe { queue.reserve(credit, owner) }.ok_or(EBUSY)?;
        // SAFETY: The box owns `room` and the memory of the request. It is freed by the handler of
        // the completion. `queue`, which owns `cqe`, outlives that by the function's contract.
        let filled = unsafe { raw.fill(room.as_ptr(), cqe) };
        match (filled, NonNull::new(cqe)) {
            (Ok(()), Some(cqe)) => {
                staged = (room, cqe);
                Ok(())
            }
            (filled, _) => {
                // SAFETY: Just reserved, and nothing was posted with it.
                unsafe { Outstanding::unreserve(cqe) };
                filled.and(Err(EINVAL))
            }
        }
    })?;
    Ok(staged)
}

/// Hands a request to `post`. After an error no other task may complete the request.
fn give<W: Posted, F>(
    queue: &Outstanding,
    request: KBox<Request<W, F>>,
    post: impl FnOnce(
        &Outstanding,
        &Credit<'_>,
        NonNull<Owner>,
        RawWr,
        NonNull<rdma_bindings::rdma_helper_room>,
    ) -> Result,
) -> Result<(), NotPosted<W, F>> {
    let refused = |error, request| Err(NotPosted { error, request });
    if queue.broken().is_some() {
        return refused(errno::enotconn(), request);
    }
    let Some(credit) = queue.credits().try_take() else {
        return refused(EAGAIN, request);
    };
    let request = KBox::into_raw(request);
    // SAFETY: `request` comes from a box, so it is there, and so are its members.
    let (raw, owner, room) = unsafe {
        (
            (*request).request.raw(),
            NonNull::new_unchecked(&raw mut (*request).owner),
            NonNull::new_unchecked((*request).room.get()),
        )
    };
    if let Err(error) = post(queue, &credit, owner, raw, room) {
        // SAFETY: The request was not given away, so nobody is told, and the box is ours again.
        return refused(error, unsafe { KBox::from_raw(request) });
    }
    credit.keep();
    Ok(())
}

impl Qp<ReadyToSend> {
    /// Posts a send request. Any context.
    pub fn post<K, F>(
        &self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        self.post_send(request)
    }
}

impl<S> Qp<S> {
    /// Posts a request like [`Qp::post`], or returns the error of the driver. Any context.
    pub(crate) fn post_send<K, F>(
        &self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        if let Err(error) = self.check_inline(&request) {
            return Err(NotPosted { error, request });
        }
        // SAFETY: The queue pair is there as long as `self`; its completions end before what it
        // holds of its requests goes.
        unsafe { post(self.as_raw(), self.sends(), request) }
    }
}

impl<S> Qp<S> {
    /// Checks that the driver copies the bytes that it has to copy of a send request. Any context.
    ///
    /// pvrdma and mlx4 would have the device read them at their addresses of the processor.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if it copies fewer: the request was [made](crate::Gather::copied) for another queue pair.
    pub(crate) fn check_inline<K, F>(&self, request: &Request<WorkRequest<K>, F>) -> Result {
        match request.request.inline_bytes() <= self.inline_limit() {
            true => Ok(()),
            false => Err(EINVAL),
        }
    }
}

/// States of a queue pair in which it takes receive requests.
pub trait Receives {}

impl Receives for Init {}
impl Receives for ReadyToReceive {}
impl Receives for ReadyToSend {}

impl<S: Receives> Qp<S> {
    /// Posts a receive request. Any context.
    pub fn post_receive<K, F>(
        &self,
        request: KBox<Request<Receive<K>, F>>,
    ) -> Result<(), NotPosted<Receive<K>, F>> {
        // SAFETY: The queue pair is there as long as `self`; its completions end before what it
        // holds of its requests goes.
        unsafe { post(self.as_raw(), self.receives(), request) }
    }
}

impl Srq {
    /// Posts a receive request, for whichever queue pair takes it. Any context.
    pub fn post<K, F>(
        &self,
        request: KBox<Request<Receive<K>, F>>,
    ) -> Result<(), NotPosted<Receive<K>, F>> {
        give(self.queue(), request, |queue, credit, owner, raw, _room| {
            // SAFETY: The box, in which the owner is, stays until that has been told, which takes it.
            let cqe = unsafe { queue.reserve(credit, owner) }.ok_or(EBUSY)?;
            // SAFETY: The queue is there as long as `self`, and each queue pair that shares it has a
            // reference. The slot is `queue`'s, which all their completion queues keep; what the
            // request refers to stays in the box.
            unsafe { raw.post_shared(self.as_raw(), cqe) }.inspect_err(|_| {
                // SAFETY: Just reserved, and nothing was posted with it.
                unsafe { Outstanding::unreserve(cqe) }
            })
        })
    }
}
