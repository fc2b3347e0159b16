// SPDX-License-Identifier: GPL-2.0

//! Work requests on the heap, each with its own completion.
//!
//! A waiter on the stack waits for its requests. A request on the heap has no
//! waiter: its completion calls a handler.

use crate::{
    cm::Endpoint,
    outstanding::{
        End,
        Owner, //
    },
    prelude::*,
    qp::RawQp,
    srq::Srq,
    wc::{
        Arrival,
        CqId,
        Invalidated, //
    },
    wr::{
        Receive,
        WorkRequest, //
    }, //
};
use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ptr, //
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
///     |ended: CompletedRequest<'_>| match ended.result {
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

/// The memory of a request that has ended, for another one.
pub type RequestMemory<W, F> = KBox<MaybeUninit<Request<W, F>>>;

/// A handler for the completion of a request. Functions of one argument implement it.
pub trait CompletionHandler<W>: Sized + Send + 'static {
    /// Handles the completion of the request. The request was dropped, or leaked if the device may
    /// use its memory at any time.
    fn ended(self, ended: CompletedRequest<'_>);

    /// Keeps the memory of the request. Called before [`ended`](Self::ended).
    fn keep(&self, memory: RequestMemory<W, Self>) {
        drop(memory);
    }
}

impl<W, F: FnOnce(CompletedRequest<'_>) + Send + 'static> CompletionHandler<W> for F {
    fn ended(self, ended: CompletedRequest<'_>) {
        self(ended)
    }
}

/// A request that has ended. Made by this crate only: it is believed.
#[non_exhaustive]
pub struct CompletedRequest<'a> {
    /// How; with what has come, if it was a receive.
    pub result: Result<Arrival, WrError>,
    /// The vendor's error code.
    pub vendor_error: u32,
    /// The key of this side that the peer had the device invalidate, as proof of that.
    pub invalidated: Option<Invalidated<'a>>,
    /// The completion queue that told of it, if one has.
    pub at: Option<CqId>,
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
    /// The completion target of a request.
    const OWNER: Owner = {
        // SAFETY: `ended` is called once, with a pointer to the member of a box that `post` has given away.
        unsafe { Owner::new(Self::ended) }
    };

    /// Creates a request. Does not sleep if `flags` do not allow it.
    ///
    /// When it has ended, `then` is told.
    pub fn new(request: W, then: F, flags: kernel::alloc::Flags) -> Result<KBox<Self>> {
        Self::try_new(request, then, flags).map_err(|_| ENOMEM)
    }

    /// Creates a request like [`Request::new`]. Without memory it drops `request` and returns
    /// `then`.
    pub fn try_new(request: W, then: F, flags: kernel::alloc::Flags) -> Result<KBox<Self>, F> {
        match KBox::new_uninit(flags) {
            Ok(memory) => {
                Self::new_in(memory, || Ok::<_, Error>(request), then).map_err(|(_, then)| then)
            }
            Err(_) => Err(then),
        }
    }

    /// Creates a request like [`Request::new`] in `memory`. If `request` fails, returns its error and `then`. Any
    /// context.
    #[inline]
    pub fn new_in<E>(
        mut memory: RequestMemory<W, F>,
        request: impl FnOnce() -> Result<W, E>,
        then: F,
    ) -> Result<KBox<Self>, (E, F)> {
        let result = request();
        let this = memory.as_mut_ptr();
        if let Ok(request) = &result {
            // A request is large, and each move of a value may copy it.
            // SAFETY: `this` is valid for writes. `request` is forgotten below, so this moves it.
            unsafe { ptr::copy_nonoverlapping(request, &raw mut (*this).request, 1) };
        }
        match result {
            Ok(request) => mem::forget(request),
            Err(error) => return Err((error, then)),
        }
        // SAFETY: `this` is valid for writes. All members have a value: `request` has returned one.
        unsafe {
            (&raw mut (*this).owner).write(Self::OWNER);
            (&raw mut (*this).then).write(then);
            Ok(memory.assume_init())
        }
    }

    /// Handles the end of the request.
    ///
    /// # Safety
    ///
    /// `owner` must be the member of a box that was given away for this.
    unsafe fn ended(owner: NonNull<Owner>, end: &End<'_>) {
        let this: *mut Self = container_of!(owner.as_ptr(), Self, owner);
        let (mut vendor_error, mut invalidated, mut at) = (0, None, None);
        let result = match end {
            End::Completed(told) => {
                let (arrival, key) = told.arrival();
                (vendor_error, invalidated, at) = (told.vendor_error(), key, Some(told.at()));
                told.status.to_result().map(|()| arrival)
            }
            End::Refused(error) => Err(WrError::Post(*error)),
            End::Gone => Err(WrError::TimedOut),
            End::Lost => Err(WrError::Lost),
        };
        if !matches!(end, End::Lost) {
            // SAFETY: `this` is a box that was given away for this, so `request` is valid. It is not
            // used again. The device does not use it: it was not lost.
            unsafe { ptr::drop_in_place(&raw mut (*this).request) };
        }
        // SAFETY: `this` is a box that was given away for this. `then` is moved out once, and nothing in
        // the box is used again.
        let (then, memory) = unsafe {
            (
                (&raw const (*this).then).read(),
                KBox::from_raw(this.cast()),
            )
        };
        then.keep(memory);
        then.ended(CompletedRequest {
            result,
            vendor_error,
            invalidated,
            at,
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
/// - `post` must not use the request after it has posted the request.
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
    let posted = slot.and_then(|slot| {
        // SAFETY: `queue` has just given the slot. After an error the request was not posted.
        post(wr, slot.cqe.get()).inspect_err(|_| unsafe { queue.put_back(slot) })
    });
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
            let error = errno(bindings::ENOTCONN);
            return Err(NotPosted { error, request });
        }
        let RawQp {
            qp, sends, inline, ..
        } = &self.qp.raw;
        let send = |wr: *mut WorkRequest<K>, cqe| {
            // SAFETY: `wr` is valid until it is posted, by the contract of `post`. `qp` is valid as long as
            // `self`. The box owns the memory of the request.
            unsafe { WorkRequest::post(wr, qp.as_ptr(), cqe, *inline) }
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

#[kernel::macros::kunit_tests(rdma_request)]
mod tests {
    use super::*;
    use crate::{
        completion::Done,
        waiter::Waiter,
        wc::WcStatus, //
    };
    use pin_init::stack_pin_init;
    use rdma_bindings as b;

    const FLUSHED: u32 = b::ib_wc_status_IB_WC_WR_FLUSH_ERR;

    /// The `cqe` and the opcode of the last posted request.
    static CQE: Atomic<*mut b::ib_cqe> = Atomic::new(null_mut());
    static OPCODE: Atomic<u32> = Atomic::new(0);
    /// The result of the driver.
    static SAYS: Atomic<i32> = Atomic::new(0);

    unsafe extern "C" fn post_send(
        _qp: *mut b::ib_qp,
        wr: *const b::ib_send_wr,
        _bad: *mut *const b::ib_send_wr,
    ) -> c_int {
        // SAFETY: `wr` is a request that is there for the call, and has a `cqe`.
        let (cqe, opcode) = unsafe { (*(*wr).__bindgen_anon_1.wr_cqe.as_ref(), (*wr).opcode) };
        CQE.store(cqe, Relaxed);
        OPCODE.store(opcode, Relaxed);
        SAYS.load(Relaxed)
    }

    /// A queue pair of the fake driver, without other objects.
    struct Fake {
        qp: KBox<b::ib_qp>,
        _device: KBox<b::ib_device>,
    }

    impl Fake {
        fn new() -> Result<Self> {
            SAYS.store(0, Relaxed);
            let zeroed = GFP_KERNEL | kernel::alloc::flags::__GFP_ZERO;
            // SAFETY: All of a `struct ib_device` and of a `struct ib_qp` may be 0.
            let (mut device, mut qp) = unsafe {
                (
                    KBox::<b::ib_device>::new_uninit(zeroed)?.assume_init(),
                    KBox::<b::ib_qp>::new_uninit(zeroed)?.assume_init(),
                )
            };
            device.ops.post_send = Some(post_send);
            qp.device = &raw mut *device;
            Ok(Self {
                qp,
                _device: device,
            })
        }

        fn as_raw(&mut self) -> *mut b::ib_qp {
            &raw mut *self.qp
        }
    }

    type Posted<W, F> = Result<(), NotPosted<W, F>>;

    /// Posts a request on the fake queue pair.
    fn give<F>(
        fake: &mut Fake,
        queue: &Outstanding,
        request: KBox<Request<WorkRequest<()>, F>>,
    ) -> Posted<WorkRequest<()>, F> {
        let qp = fake.as_raw();
        // SAFETY: `wr` is valid until it is posted. The fake queue pair is valid, completes nothing by
        // itself, and the test keeps `queue`.
        unsafe { post(queue, request, |wr, cqe| WorkRequest::post(wr, qp, cqe, 0)) }
    }

    /// Completes the last posted request.
    fn complete(status: u32) {
        let cqe = CQE.load(Relaxed);
        let mut wc = b::ib_wc {
            status,
            ..Default::default()
        };
        // SAFETY: This is the member that kernel users set.
        *unsafe { wc.__bindgen_anon_1.wr_cqe.as_mut() } = cqe;
        // SAFETY: `cqe` is that of a request, whose queue the test still has.
        if let Some(done) = unsafe { (*cqe).done } {
            // SAFETY: `wc` is its completion.
            unsafe { done(null_mut(), &mut wc) };
        }
    }

    /// The results of the requests, one digit each.
    type Log = Arc<Atomic<u32>>;

    fn log() -> Result<Log> {
        Ok(Arc::new(Atomic::new(0), GFP_KERNEL)?)
    }

    /// Creates a request that logs its result.
    fn request(
        log: &Log,
    ) -> Result<KBox<Request<WorkRequest<()>, impl FnOnce(CompletedRequest<'_>) + Send + 'static>>>
    {
        let log = log.clone();
        let then = move |ended: CompletedRequest<'_>| {
            let digit = match ended.result {
                Ok(_) => 1,
                Err(WrError::Flushed) => 2,
                Err(WrError::TimedOut) => 3,
                Err(WrError::Lost) => 4,
                _ => 9,
            };
            log.store(log.load(Relaxed) * 10 + digit, Relaxed);
        };
        Request::new(WorkRequest::empty(), then, GFP_KERNEL)
    }

    #[test]
    fn each_ends_once() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(2)?;
        for _ in 0..5 {
            let posted = give(&mut fake, &queue, request(&log)?);
            assert!(posted.is_ok());
            assert_eq!(OPCODE.load(Relaxed), b::ib_wr_opcode_IB_WR_RDMA_WRITE);
            complete(b::ib_wc_status_IB_WC_SUCCESS);
            // Once is enough.
            complete(b::ib_wc_status_IB_WC_SUCCESS);
        }
        assert_eq!(log.load(Relaxed), 11111);
        assert!(queue.broken().is_none());
        Ok(())
    }

    #[test]
    fn no_more_than_there_are_credits() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(2)?;
        for room in [true, true, false] {
            match give(&mut fake, &queue, request(&log)?) {
                Ok(()) => assert!(room),
                Err(failed) => assert!(!room && failed.error == EAGAIN),
            }
        }
        // Destroyed, before they have completed.
        queue.end_all(End::Gone);
        assert_eq!(log.load(Relaxed), 33);
        assert!(queue.broken().is_some());
        Ok(())
    }

    #[test]
    fn refused_and_broken() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(1)?;
        SAYS.store(ENOMEM.to_errno(), Relaxed);
        let refused = give(&mut fake, &queue, request(&log)?);
        let refused = refused.err().ok_or(EINVAL)?;
        assert_eq!(refused.error, ENOMEM);
        // It took neither slot nor credit.
        SAYS.store(0, Relaxed);
        assert!(give(&mut fake, &queue, refused.request).is_ok());
        complete(FLUSHED);
        assert_eq!(log.load(Relaxed), 2);
        assert_eq!(queue.broken().map(WcStatus::as_raw), Some(FLUSHED));
        let refused = give(&mut fake, &queue, request(&log)?);
        assert!(refused.is_err_and(|refused| refused.error == errno(bindings::ENOTCONN)));
        Ok(())
    }

    #[test]
    fn lost_with_the_queue() -> Result {
        let (mut fake, log) = (Fake::new()?, log()?);
        let queue = Outstanding::new(1)?;
        assert!(give(&mut fake, &queue, request(&log)?).is_ok());
        drop(queue);
        assert_eq!(log.load(Relaxed), 4);
        Ok(())
    }

    #[test]
    fn waited_for_on_the_stack() -> Result {
        let mut fake = Fake::new()?;
        let queue = Outstanding::new(3)?;
        stack_pin_init!(let waiter = Waiter::new(&queue));
        let waiter = waiter.into_ref();
        for _ in 0..2 {
            let credit = queue.credits().try_take().ok_or(EAGAIN)?;
            let qp = fake.as_raw();
            // SAFETY: The fake queue pair is valid, the request refers to nothing, and the waiter waits.
            let posted = unsafe {
                waiter.post(&credit, |cqe| {
                    WorkRequest::post(&mut WorkRequest::empty(), qp, cqe, 0)
                })
            };
            assert!(posted.is_ok());
            credit.keep();
        }
        complete(b::ib_wc_status_IB_WC_SUCCESS);
        stack_pin_init!(let done = Done::new());
        let done = done.into_ref();
        // SAFETY: It stays until all has ended.
        assert!(!unsafe { waiter.begin_wait(done) });
        assert!(waiter.result().is_ok());
        // The other one is gone.
        queue.end_all(End::Gone);
        assert!(done.nap());
        assert!(matches!(waiter.result(), Err(WrError::Flushed)));
        Ok(())
    }
}
