// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered by a request on their consumer's queue pair, again and again, without an allocation.
//!
//! A region that is [lent](crate::endpoint_mr) allocates its state and its request each time. A [`ReusableMr`] has both
//! for good.

use crate::{
    endpoint_mr::{
        settled,
        Invalidation,
        RegState,
        Settled, //
    },
    outstanding::{
        End,
        Owner, //
    },
    prelude::*,
    wc::DeviceId,
    wr::SendWr, //
};
use core::cell::UnsafeCell;
use rdma_bindings as b;

/// A handler of failed requests about a region.
pub trait RegistrationHandler: Send + Sync + 'static {
    /// Handles the failure of a request about the region, after the state of the registration has changed. Any context.
    fn failed(&self, error: WrError);
}

/// A request about a region, which is posted again and again.
///
/// # Invariants
///
/// - From the push to a chain until the request has ended, `owner` is that of a slot, which has a reference to this.
/// - `wr` changes only while the request is in no chain.
pub(crate) struct RegRequest<F> {
    owner: Owner,
    wr: UnsafeCell<SendWr>,
    state: Arc<RegState>,
    handler: F,
}

// SAFETY: `wr` changes only while the request is in no chain. Only `give` changes it, and only one
// task may call that.
unsafe impl<F: Sync> Sync for RegRequest<F> {}

impl<F: RegistrationHandler> RegRequest<F> {
    /// The completion target of a request.
    const OWNER: Owner = {
        // SAFETY: `ended` is called once for each push, with a pointer to the member of a request that has a reference for
        // that.
        unsafe { Owner::new(Self::ended) }
    };

    /// Makes a request. May sleep.
    fn new(device: DeviceId, handler: F) -> Result<Arc<Self>> {
        let this = Self {
            owner: Self::OWNER,
            wr: UnsafeCell::new(SendWr::empty()),
            state: RegState::new(0, device)?,
            handler,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Handles the end of the request.
    ///
    /// # Safety
    ///
    /// `owner` must be the member of a request with a reference for this.
    unsafe fn ended(owner: NonNull<Owner>, end: &End<'_>) {
        // SAFETY: `owner` is the member of a request that has a reference for this, by the function's contract.
        let this = unsafe { Arc::from_raw(container_of!(owner.as_ptr(), Self, owner)) };
        let result = match end {
            End::Completed(told) => told.status.to_result(),
            End::Refused(error) => Err(WrError::Post(*error)),
            End::Gone => Err(WrError::TimedOut),
            End::Lost => Err(WrError::Lost),
        };
        this.state.end_by(result);
        if let Err(error) = result {
            this.handler.failed(error);
        }
    }

    /// Has the request posted by `post`, as `wr`, about the region with this key. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `post` has dropped the request, and returns success.
    /// - The errors of `post`, which has not pushed the request.
    ///
    /// # Safety
    ///
    /// - No request before this one may be under way, and nobody else may post one.
    /// - The region of `wr` must stay until the request has ended.
    unsafe fn give(
        this: &Arc<Self>,
        wr: SendWr,
        key: u32,
        post: impl FnOnce(ReadyRequest<F>) -> Result,
    ) -> Result {
        this.state.renew(key);
        // SAFETY: The request is in no chain, and nobody else may post it, by the function's contract.
        unsafe { *this.wr.get() = wr };
        match this.state.give(|| post(ReadyRequest(Some(this.clone()))))? {
            true => Ok(()),
            false => Err(EINVAL),
        }
    }
}

/// A request that is ready to be [pushed](crate::cm::Chain::push_ready) to a chain. Dropping it takes it back.
pub struct ReadyRequest<F: RegistrationHandler>(Option<Arc<RegRequest<F>>>);

impl<F: RegistrationHandler> ReadyRequest<F> {
    /// Takes a slot of a send queue for the request, and fills its C structure. Returns both. Any context.
    ///
    /// # Errors
    ///
    /// The errors of [`Outstanding::take_slot`].
    ///
    /// # Safety
    ///
    /// The request must be posted or refused, and its completion must end before `queue` is freed.
    pub(crate) unsafe fn take_slot(
        mut self,
        queue: &Outstanding,
    ) -> Result<(NonNull<b::rdma_helper_send_wr>, NonNull<b::ib_cqe>)> {
        let request = Arc::into_raw(self.0.take().ok_or(EINVAL)?);
        // SAFETY: `request` comes from an `Arc`, so it is valid, and so are its members.
        let (owner, wr) = unsafe { (NonNull::from(&(*request).owner), (*request).wr.get()) };
        // SAFETY: `request` is a reference until `ended` has been called.
        let cqe = match unsafe { queue.take_slot(owner) } {
            Ok(slot) => slot.cqe.get(),
            Err(error) => {
                // SAFETY: No slot has the request, so nobody else takes the reference back.
                self.0 = Some(unsafe { Arc::from_raw(request) });
                return Err(error);
            }
        };
        // SAFETY: The request is in no chain yet, so only the owner of this value uses `wr`. `cqe`
        // is a member of a slot.
        Ok(unsafe { ((*wr).arm(cqe), NonNull::new_unchecked(cqe)) })
    }
}

impl<F: RegistrationHandler> Drop for ReadyRequest<F> {
    fn drop(&mut self) {
        if let Some(request) = &self.0 {
            request.state.take_back();
        }
    }
}

/// A region for one memory after the other. It has the state and the requests of its registration for good.
///
/// The key is valid for a peer that gets it by a request that is posted behind the registration, on the same queue
/// pair.
///
/// [Take](Self::take) the region out. Dropping this does the same, and sleeps.
pub struct ReusableMr<L: DmaList, F: RegistrationHandler> {
    /// There from the time that the registration was posted until it is taken out.
    mr: Option<PreparedMr<L>>,
    registration: Arc<RegRequest<F>>,
    invalidation: Arc<RegRequest<F>>,
}

impl<L: DmaList, F: RegistrationHandler> ReusableMr<L, F> {
    /// Makes one without a region, for this device. `handler` makes the handlers of its requests. May sleep.
    pub fn new(device: &Device, handler: impl Fn() -> F) -> Result<Self> {
        let device = DeviceId::of(device);
        Ok(Self {
            mr: None,
            registration: RegRequest::new(device, handler())?,
            invalidation: RegRequest::new(device, handler())?,
        })
    }

    /// Returns the state of the registration.
    pub fn fate(&self) -> &Arc<RegState> {
        &self.registration.state
    }

    /// Returns the region, unless there is none. Any context.
    pub fn prepared(&self) -> Option<&PreparedMr<L>> {
        self.mr.as_ref()
    }

    /// Has a region registered with its next key: calls `post` to post the request. The state of the registration
    /// must be in no list when this is called. Any context.
    ///
    /// # Errors
    ///
    /// After an error, nothing was posted. The error has the region.
    ///
    /// - `EBUSY` if there is a region already.
    /// - `EINVAL` if `post` has dropped the request, and returns success.
    /// - The errors of `post`.
    pub fn register(
        &mut self,
        mut mr: PreparedMr<L>,
        post: impl FnOnce(&Arc<RegState>, ReadyRequest<F>) -> Result,
    ) -> Result<(), (Error, PreparedMr<L>)> {
        if self.mr.is_some() {
            return Err((EBUSY, mr));
        }
        mr.next_key();
        let (wr, key) = (SendWr::register(&mr), mr.rkey());
        let request = &self.registration;
        // SAFETY: There was no region, so no request is under way. The region is kept here until the request has ended.
        let given =
            unsafe { RegRequest::give(request, wr, key, |ready| post(&request.state, ready)) };
        match given {
            Ok(()) => {
                self.mr = Some(mr);
                Ok(())
            }
            Err(error) => Err((error, mr)),
        }
    }

    /// Has the region invalidated: calls `post` to post the request behind the registration, and returns an
    /// [`Invalidation`] to wait for. If the region has been invalidated, the request is a write of no bytes to the peer, as
    /// that of [`EndpointMr::invalidate`](crate::endpoint_mr::EndpointMr::invalidate). Any context.
    ///
    /// # Errors
    ///
    /// - `EBUSY` if an invalidation is under way.
    /// - The errors of `post`.
    pub fn invalidate(
        &mut self,
        post: impl FnOnce(ReadyRequest<F>) -> Result,
    ) -> Result<Invalidation> {
        let (fate, request) = (&self.registration.state, &self.invalidation);
        if !request.state.is_settled() {
            return Err(EBUSY);
        }
        let wr = match fate.is_invalidated() {
            true => SendWr::empty(),
            false => SendWr::invalidate(fate.key()),
        };
        // SAFETY: The request before has ended. It names a key, and nothing that would have to stay.
        unsafe { RegRequest::give(request, wr, fate.key(), post) }?;
        Ok(Invalidation::new(request.state.clone(), fate.clone()))
    }

    /// Checks whether the device has registered the region, and a later invalidation is this fence.
    /// Any context.
    pub fn is_free_by(&self, fence: Fence) -> bool {
        let fate = self.fate();
        let is_free = |mr: &PreparedMr<L>| fate.is_free_by(fence, &mr.pd().device);
        fate.is_valid() && self.mr.as_ref().is_some_and(is_free)
    }

    /// Takes the region out, if it [is free](Self::is_free_by). Any context.
    pub fn take_free(&mut self, fence: Fence) -> Option<FastMr> {
        if !self.is_free_by(fence) {
            return None;
        }
        match self.take(fence) {
            Some(Settled::Free(mr)) => Some(mr),
            _ => None,
        }
    }

    /// Takes the region out, as [`EndpointMr::settle`](crate::endpoint_mr::EndpointMr::settle) does. Sleeps until the
    /// registration has ended, unless it [is settled](RegState::is_settled); and while a region is deregistered that the
    /// device did not register. If need be, the caller must end the queue pair.
    pub fn take(&mut self, fence: Fence) -> Option<Settled<L>> {
        let mr = self.mr.take()?;
        let fate = self.fate();
        if !fate.is_given() {
            return Some(Settled::Unposted(mr));
        }
        let outcome = fate.outcome();
        // SAFETY: `outcome` is that of the registration of `mr`, which is not used by the request any more, or only by
        // requests that are lost.
        Some(unsafe { settled(mr, outcome, fate, fence) })
    }
}

impl<L: DmaList, F: RegistrationHandler> Drop for ReusableMr<L, F> {
    fn drop(&mut self) {
        drop(self.take(Fence::DEREGISTER));
    }
}

#[kernel::macros::kunit_tests(rdma_reusable_mr)]
mod tests {
    use super::*;

    /// Counts failures.
    struct Count(Arc<Atomic<u32>>);

    impl RegistrationHandler for Count {
        fn failed(&self, _error: WrError) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// A request, how often it has failed, and a queue for two.
    struct Posting {
        request: Arc<RegRequest<Count>>,
        failed: Arc<Atomic<u32>>,
        queue: Arc<Outstanding>,
    }

    impl Posting {
        fn new() -> Result<Self> {
            let failed = Arc::new(Atomic::new(0), GFP_KERNEL)?;
            Ok(Self {
                request: RegRequest::new(DeviceId::NONE, Count(failed.clone()))?,
                failed,
                queue: Outstanding::new(2)?,
            })
        }

        /// Has the request posted, and returns where it completes to.
        fn give(&self) -> Result<NonNull<b::ib_cqe>> {
            let mut to = Err(EIO);
            let post = |ready: ReadyRequest<Count>| {
                // SAFETY: Each test completes the request, or drops the queue.
                let (_, cqe) = unsafe { ready.take_slot(&self.queue) }?;
                to = Ok(cqe);
                Ok(())
            };
            // SAFETY: The tests give a request that has ended, and it is about no region.
            unsafe { RegRequest::give(&self.request, SendWr::empty(), 7, post) }?;
            to
        }
    }

    /// Completes a request.
    fn complete(cqe: NonNull<b::ib_cqe>, status: u32) {
        let mut wc = b::ib_wc {
            status,
            ..Default::default()
        };
        // SAFETY: This is the member that kernel users set.
        *unsafe { wc.__bindgen_anon_1.wr_cqe.as_mut() } = cqe.as_ptr();
        // SAFETY: `cqe` is that of a slot, whose queue the test has.
        if let Some(done) = unsafe { cqe.as_ref() }.done {
            // SAFETY: `wc` is a completion with this `cqe`.
            unsafe { done(null_mut(), &mut wc) };
        }
    }

    #[test]
    fn posted_again_and_again() -> Result {
        let posting = Posting::new()?;
        let state = &posting.request.state;
        for _ in 0..5 {
            let cqe = posting.give()?;
            assert!(state.is_given() && !state.is_known() && state.key() == 7);
            complete(cqe, b::ib_wc_status_IB_WC_SUCCESS);
            assert!(state.is_valid() && posting.queue.is_idle());
        }
        assert_eq!(posting.failed.load(Relaxed), 0);
        complete(posting.give()?, b::ib_wc_status_IB_WC_WR_FLUSH_ERR);
        assert!(state.is_known() && !state.is_valid());
        assert_eq!(posting.failed.load(Relaxed), 1);
        // The queue is broken now.
        assert!(posting.give().is_err());
        assert!(!state.is_given() && posting.queue.is_idle());
        Ok(())
    }

    #[test]
    fn dropped_is_not_posted() -> Result {
        let posting = Posting::new()?;
        for said in [Ok(()), Err(EAGAIN)] {
            let dropped = |_: ReadyRequest<Count>| said;
            // SAFETY: No request is under way, and this one is about no region.
            let given = unsafe { RegRequest::give(&posting.request, SendWr::empty(), 7, dropped) };
            assert_eq!(given, said.and(Err(EINVAL)));
            assert!(!posting.request.state.is_given());
        }
        Ok(())
    }

    #[test]
    fn lost_with_the_queue() -> Result {
        let posting = Posting::new()?;
        posting.give()?;
        drop(posting.queue);
        assert_eq!(posting.request.state.outcome(), crate::endpoint_mr::LOST);
        assert_eq!(posting.failed.load(Relaxed), 1);
        Ok(())
    }
}
