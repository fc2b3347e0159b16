// SPDX-License-Identifier: GPL-2.0

//! Chains of send requests that are posted with one doorbell.

use super::*;
use crate::{
    request::{
        post,
        NotPosted,
        Request, //
    },
    reusable_mr::{
        ReadyRequest,
        RegistrationHandler, //
    },
    wr::WorkRequest, //
};

/// A chain of send requests of an endpoint. They have slots in its queue and are not posted yet.
///
/// Each request that has been [pushed](Chain::push) completes exactly once: like a posted request,
/// or with [`WrError::Post`]. The requests may have different types. Dropping the chain completes
/// all of them with ECANCELED.
///
/// # Invariants
///
/// `first` is null, or the head of a list of requests up to `last`. Each of them begins a
/// `union rdma_helper_send_wr`, has a slot of the endpoint's send queue, and was neither posted nor
/// refused.
///
/// # Examples
///
/// ```ignore
/// let mut chain = endpoint.begin_chain()?;
/// for request in requests {
///     chain.push(request).map_err(|refused| refused.error)?;
/// }
/// // One word to the device for all of them.
/// chain.post()?;
/// ```
pub struct Chain {
    endpoint: Arc<Endpoint>,
    first: *mut b::ib_send_wr,
    last: *mut b::ib_send_wr,
    tail: Option<Tail>,
}

/// Unsignaled requests at the end of a send queue. A later signaled request reports their
/// completion.
///
/// # Invariants
///
/// `last` is the `cqe` of the last of `count` unsignaled requests of the endpoint `of`. Each of
/// them follows the one before it. They have not completed, or the endpoint accepts no more
/// requests.
pub struct Tail {
    of: u64,
    last: NonNull<b::ib_cqe>,
    count: usize,
}

// SAFETY: Any task may complete the requests: `last` is only compared and linked.
unsafe impl Send for Tail {}

// SAFETY: `Tail` has no methods that take `&self`.
unsafe impl Sync for Tail {}

/// Maximum number of consecutive unsignaled requests. It is half of the queue if that is less. A
/// signaled request returns their places.
const MAX_UNSIGNALED: usize = 16;

/// Requests of a chain that were not posted. Dropping it completes them with the error, in any
/// context.
pub struct Unposted {
    chain: Chain,
    error: Error,
}

impl Drop for Unposted {
    fn drop(&mut self) {
        self.chain.refuse(self.error);
    }
}

// SAFETY: Any task may post or complete the requests: their completion handlers are `Send`.
unsafe impl Send for Chain {}

// SAFETY: The only method that takes `&self` compares a pointer.
unsafe impl Sync for Chain {}

impl Endpoint {
    /// Begins a chain. Any context.
    ///
    /// # Errors
    ///
    /// - ENOTCONN if the endpoint is not connected yet.
    pub fn begin_chain(self: &Arc<Self>) -> Result<Chain> {
        if !self.is_open() {
            return Err(errno(bindings::ENOTCONN));
        }
        // INVARIANT: The list is empty.
        Ok(Chain {
            endpoint: self.clone(),
            first: null_mut(),
            last: null_mut(),
            tail: None,
        })
    }

    /// Begins a chain after the unsignaled requests that [`Chain::post`] returned last. Any
    /// context.
    pub fn begin_chain_behind(self: &Arc<Self>, tail: &mut Option<Tail>) -> Result<Chain> {
        let mut chain = self.begin_chain()?;
        // A tail of another endpoint does not precede this chain.
        chain.tail = tail.take().filter(|tail| tail.of == self.id);
        Ok(chain)
    }
}

impl Chain {
    /// Appends a signaled request. Any context.
    pub fn push<K, F>(
        &mut self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        self.push_by(|chain| chain.add(request))
    }

    /// Appends an unsignaled request, which completes only if it fails. A later signaled request
    /// reports its completion, also one of a later chain, or the drain of the queue pair does. Any
    /// context.
    pub fn push_unsignaled<K, F>(
        &mut self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        self.push_unsignaled_by(|chain| chain.add(request))
    }

    /// Appends a request about a [`ReusableMr`](crate::reusable_mr::ReusableMr), as [`push`](Self::push). Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN` if the queue is full.
    /// - `ENOTCONN` if the queue pair is broken.
    pub fn push_ready<F: RegistrationHandler>(&mut self, request: ReadyRequest<F>) -> Result {
        self.push_by(|chain| chain.add_ready(request))
    }

    /// Appends a request about a [`ReusableMr`](crate::reusable_mr::ReusableMr), as
    /// [`push_unsignaled`](Self::push_unsignaled). Any context.
    ///
    /// # Errors
    ///
    /// The errors of [`push_ready`](Self::push_ready).
    pub fn push_ready_unsignaled<F: RegistrationHandler>(
        &mut self,
        request: ReadyRequest<F>,
    ) -> Result {
        self.push_unsignaled_by(|chain| chain.add_ready(request))
    }

    /// Appends a signaled request by `add`, which returns its `cqe`.
    fn push_by<E>(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<NonNull<b::ib_cqe>, E>,
    ) -> Result<(), E> {
        let cqe = add(self)?;
        if let Some(tail) = self.tail.take() {
            // SAFETY: `cqe` and `tail.last` have slots of this queue, the latter by the invariant
            // of `Tail`. The new request is posted after it, and nothing else follows the tail,
            // which was taken.
            unsafe { Outstanding::follow(cqe.as_ptr(), tail.last.as_ptr()) };
        }
        Ok(())
    }

    /// Appends an unsignaled request by `add`, which returns its `cqe`.
    fn push_unsignaled_by<E>(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<NonNull<b::ib_cqe>, E>,
    ) -> Result<(), E> {
        let count = self.tail.as_ref().map_or(0, |tail| tail.count);
        if count >= MAX_UNSIGNALED.min(self.endpoint.qp.raw.sends.depth() / 2) {
            return self.push_by(add);
        }
        let last = add(self)?;
        // SAFETY: `last` is the `cqe` of the request `self.last`, which has a slot and is valid until it
        // is posted. `before.last` is unsignaled and has a slot by the invariant of `Tail`.
        unsafe {
            Outstanding::silence(last.as_ptr());
            (*self.last).send_flags &= !b::ib_send_flags_IB_SEND_SIGNALED;
            if let Some(before) = self.tail.take() {
                Outstanding::follow(last.as_ptr(), before.last.as_ptr());
            }
        }
        // INVARIANT: `last` is the last one, and follows the previous tail.
        let count = count + 1;
        let of = self.endpoint.id;
        self.tail = Some(Tail { of, last, count });
        Ok(())
    }

    /// Appends a request, and returns its `cqe`.
    fn add<K, F>(
        &mut self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<NonNull<b::ib_cqe>, NotPosted<WorkRequest<K>, F>> {
        let qp = &self.endpoint.qp.raw;
        let fill = |wr: *mut WorkRequest<K>, cqe| {
            // SAFETY: `wr` is valid until it is posted, by the contract of `post`.
            let filled = unsafe { (*wr).fill(cqe, qp.inline) }?;
            Ok((filled, NonNull::new(cqe).ok_or(EINVAL)?))
        };
        // SAFETY: The request is posted or refused at the end of the chain. `self.endpoint` keeps
        // the queue valid until all completions have been handled.
        let (wr, cqe) = unsafe { post(&qp.sends, request, fill) }?;
        let wr = wr.as_ptr().cast();
        // SAFETY: `wr` is a request that is not posted yet and has a slot of this queue.
        unsafe { self.link(wr, wr) };
        Ok(cqe)
    }

    /// Appends a request about a region, and returns its `cqe`.
    fn add_ready<F: RegistrationHandler>(
        &mut self,
        request: ReadyRequest<F>,
    ) -> Result<NonNull<b::ib_cqe>> {
        // SAFETY: The request is posted or refused at the end of the chain. `self.endpoint` keeps
        // the queue valid until all completions have been handled.
        let (wr, cqe) = unsafe { request.take_slot(&self.endpoint.qp.raw.sends) }?;
        let wr = wr.as_ptr().cast();
        // SAFETY: `wr` is a request that is not posted yet and has a slot of this queue.
        unsafe { self.link(wr, wr) };
        Ok(cqe)
    }

    /// Appends a linked list of requests.
    ///
    /// # Safety
    ///
    /// `first` to `last` must be requests that are not posted and have slots of the endpoint's send
    /// queue.
    unsafe fn link(&mut self, first: *mut b::ib_send_wr, last: *mut b::ib_send_wr) {
        // INVARIANT: The requests are not posted and have slots by the function's contract.
        if self.first.is_null() {
            self.first = first;
        } else {
            // SAFETY: `self.last` is the last request of the list by the type invariant.
            unsafe { (*self.last).next = first };
        }
        self.last = last;
    }

    /// Appends the requests of another chain. If that has another endpoint, its requests are
    /// cancelled. Any context.
    pub fn append(&mut self, mut other: Self) {
        if other.is_empty() || !Arc::ptr_eq(&self.endpoint, &other.endpoint) {
            return;
        }
        if let Some(tail) = self.tail.take() {
            // SAFETY: `other.first` has a slot of this queue by the invariant of `Chain`, and
            // `tail.last` by that of `Tail`. `other.first` is posted after the tail, and nothing
            // else follows the tail, which was taken.
            unsafe {
                Outstanding::follow(cqe_of(other.first), tail.last.as_ptr());
            }
        }
        self.tail = other.tail.take();
        // INVARIANT: The other requests follow the last one, and belong to this chain only.
        // SAFETY: `other.first` to `other.last` are requests of the same endpoint that are not
        // posted, by the type invariant.
        unsafe { self.link(other.first, other.last) };
        other.first = null_mut();
    }

    /// Checks whether the chain is empty.
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Posts the chain. Returns the unsignaled requests at its end. The caller must begin the next
    /// chain [behind](Endpoint::begin_chain_behind) them. Any context.
    ///
    /// # Errors
    ///
    /// Returns the error of the driver. Requests that the driver did not accept have completed with
    /// it.
    pub fn post(self) -> Result<Option<Tail>> {
        self.try_post().map_err(|unposted| unposted.error)
    }

    /// Posts the chain like [`Chain::post`]. On an error, returns the requests that the driver did
    /// not accept. They have not completed. Any context.
    pub fn try_post(mut self) -> Result<Option<Tail>, Unposted> {
        if self.is_empty() {
            return Ok(self.tail.take());
        }
        let qp = self.endpoint.qp.as_raw();
        let mut bad = null_mut();
        // SAFETY: `qp` is valid as long as `self.endpoint`. `self.first` heads a list of unposted
        // requests. They are not freed before they complete. They are not used after a successful
        // post.
        let posted = to_result(unsafe { b::rdma_helper_post_chain(qp, self.first, &mut bad) });
        // INVARIANT: The posted requests are no longer in the list.
        self.first = if posted.is_ok() { null_mut() } else { bad };
        match posted {
            Ok(()) => Ok(self.tail.take()),
            Err(error) => Err(Unposted { chain: self, error }),
        }
    }

    /// Completes the requests of the chain with `error`.
    fn refuse(&mut self, error: Error) {
        while !self.first.is_null() {
            // SAFETY: `self.first` is a request with a slot of the endpoint's queue by the type
            // invariant. `next` is read before `refuse` frees the request.
            unsafe {
                let (wr, last) = (self.first, self.first == self.last);
                let cqe = cqe_of(wr);
                // INVARIANT: The remaining requests are unposted.
                self.first = if last { null_mut() } else { (*wr).next };
                Outstanding::refuse(cqe, error);
            }
        }
    }
}

/// Returns the `cqe` of a request.
///
/// # Safety
///
/// `wr` must be a request that was filled and is not posted.
unsafe fn cqe_of(wr: *mut b::ib_send_wr) -> *mut b::ib_cqe {
    // SAFETY: `wr` is valid by the function's contract, and `wr_cqe` is the member that was filled.
    unsafe { *(*wr).__bindgen_anon_1.wr_cqe.as_ref() }
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.refuse(errno(bindings::ECANCELED));
    }
}
