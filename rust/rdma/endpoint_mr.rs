// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered by a request on their consumer's queue pair, and the state of that
//! registration. Nobody waits for the request.

use crate::{
    completion::Done,
    in_flight::{
        InFlight,
        InFlightRef,
        StableRef, //
    },
    prelude::*,
    request::{
        CompletedRequest,
        CompletionHandler,
        NotPosted,
        Request, //
    },
    wc::{
        DeviceId,
        Invalidated, //
    },
    wr::{
        SendWr,
        WorkRequest, //
    }, //
};
use kernel::{
    list::{
        impl_list_arc_safe,
        impl_list_item,
        AtomicTracker,
        ListLinks,
        TryNewListArc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// A request that registers a lent region.
pub type EndpointRegWr<L> = WorkRequest<InFlightRef<PreparedMr<L>>>;

/// A request that ends a lent region. `F` handles its completion.
pub type InvalidationWr<F> = KBox<Request<WorkRequest<()>, F>>;

/// A region that is lent to requests.
///
/// The key is valid for a peer that gets it by a request that is posted behind the registration, on
/// the same queue pair. For all others it is valid when the registration has
/// [ended](RegState::is_known).
///
/// End it by [`EndpointMr::settle`]. Dropping it does the same, and also sleeps.
pub struct EndpointMr<L: DmaList> {
    /// Taken out once, when this ends.
    lender: ManuallyDrop<InFlight<PreparedMr<L>>>,
    fate: Arc<RegState>,
}

/// The result of lending a region.
pub enum Settled<L> {
    /// The registration was not posted.
    Unposted(PreparedMr<L>),
    /// The device has registered the region.
    Valid(ValidMr),
    /// A peer has invalidated the region, which was a fence.
    Free(FastMr),
    /// The registration failed, or its result is unknown. The region has been deregistered.
    Gone,
    /// The device won't let go of the region, which has been leaked with its mapping. The memory
    /// must never be freed.
    Stuck,
}

impl<L: DmaList> PreparedMr<L> {
    /// Gets ready to lend the region to requests, with its next key. May sleep.
    pub fn lend(mut self) -> Result<EndpointMr<L>> {
        self.next_key();
        let key = self.rkey();
        let fate = RegState::new(key, DeviceId::of(&self.pd().device))?;
        Ok(EndpointMr {
            lender: ManuallyDrop::new(InFlight::new(self)?),
            fate,
        })
    }
}

impl<L: DmaList + Send + Sync + 'static> EndpointMr<L> {
    /// Returns the region, with the key that it is going to have. Any context.
    pub fn prepared(&self) -> &PreparedMr<L> {
        self.lender.get()
    }

    /// Returns the fate of the registration.
    pub fn fate(&self) -> &Arc<RegState> {
        &self.fate
    }

    /// Creates a request that registers the region, and calls `post` to post it. `then` returns the
    /// handler of its completion, which must pass the end of the request on to its argument. Any
    /// context.
    ///
    /// # Errors
    ///
    /// After an error, nothing was posted.
    ///
    /// - `EBUSY` if there is a request already.
    /// - `ENOMEM`
    /// - `EINVAL` if `post` has dropped the request, and returns success.
    /// - The errors of `post`.
    pub fn register<F: CompletionHandler<EndpointRegWr<L>>>(
        &mut self,
        then: impl FnOnce(Registering) -> F,
        post: impl FnOnce(
            KBox<Request<EndpointRegWr<L>, F>>,
        ) -> Result<(), NotPosted<EndpointRegWr<L>, F>>,
    ) -> Result {
        if self.fate.is_given() {
            return Err(EBUSY);
        }
        let loan = self.lender.lend();
        let register = WorkRequest::new(SendWr::register(loan.get()), loan);
        let request = Request::new(register, then(Registering(self.fate.clone())), GFP_ATOMIC)?;
        match self.fate.give(|| post(request).map_err(|not| not.error))? {
            true => Ok(()),
            false => Err(EINVAL),
        }
    }

    /// Makes a request that invalidates the region, and an [`Invalidation`] to wait for. The caller
    /// must post the request behind the registration. The device needs no peer for it. Not every
    /// device allows to invalidate a region twice. So if the region has been invalidated, the
    /// request is a write of no bytes to the peer. The request tells the result of `then`, which
    /// must pass its end on. May sleep.
    ///
    /// It names a key, and nothing that would have to stay.
    pub fn invalidate<F: CompletionHandler<WorkRequest<()>>>(
        &self,
        then: impl FnOnce(Registering) -> F,
    ) -> Result<(InvalidationWr<F>, Invalidation)> {
        let own = RegState::new(self.fate.key(), self.fate.device)?;
        own.state.store(WAITING, Relaxed);
        let behind = match self.fate.is_invalidated() {
            true => WorkRequest::empty(),
            false => WorkRequest::new(SendWr::invalidate(self.fate.key()), ()),
        };
        let request = Request::new(behind, then(Registering(own.clone())), GFP_KERNEL)?;
        let of = self.fate.clone();
        Ok((request, Invalidation::new(own, of)))
    }

    /// Checks whether the region was not posted, or its registration has ended. Any context.
    pub fn is_settled(&self) -> bool {
        self.fate.is_settled()
    }
}

impl<L: DmaList> EndpointMr<L> {
    /// Checks whether the device has registered the region, and it has been invalidated since,
    /// which is this fence. Any context.
    pub fn is_free_by(&self, fence: Fence) -> bool {
        self.fate.is_valid() && self.fate.is_free_by(fence, &self.lender.get().pd().device)
    }

    /// Returns the result of lending the region. If the fence trusts a peer's invalidation, the
    /// invalidation may have freed the region. Sleeps until all requests about the region have
    /// ended, unless the region [is settled](Self::is_settled). Also sleeps while a region is
    /// deregistered that the device did not register. If need be, the caller must end the queue
    /// pair of the requests.
    pub fn settle(self, fence: Fence) -> Settled<L> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        let settled = unsafe { this.end(fence) };
        // SAFETY: `this` is never dropped, so nobody else drops its fate.
        unsafe { core::ptr::drop_in_place(&mut this.fate) };
        settled
    }

    /// Ends lending the region, and returns the result. Sleeps until all its requests have ended.
    ///
    /// # Safety
    ///
    /// The caller must call this once, and must not use the lender afterwards.
    unsafe fn end(&mut self, fence: Fence) -> Settled<L> {
        // SAFETY: The caller promises that this is the only call, and the last use of the lender.
        let lender = unsafe { ManuallyDrop::take(&mut self.lender) };
        if !self.fate.is_given() {
            return Settled::Unposted(lender.take_back());
        }
        let outcome = self.fate.outcome();
        let mr = match outcome {
            // SAFETY: The queue pair could not be destroyed, so all its requests were leaked, with
            // their loans.
            LOST => unsafe { lender.take_lost() },
            _ => lender.take_back(),
        };
        // SAFETY: `outcome` is that of the registration of `mr`.
        unsafe { settled(mr, outcome, &self.fate, fence) }
    }
}

/// Returns what is left of a region whose registration has ended with this outcome. If the fence trusts a peer's
/// invalidation, the invalidation may have freed the region. Sleeps while a region is deregistered that the device did not
/// register.
///
/// # Safety
///
/// `outcome` must be that of the registration of `mr`, and `fate` its state. The request must not use the region any
/// more, unless it is [`LOST`].
pub(crate) unsafe fn settled<L: DmaList>(
    mr: PreparedMr<L>,
    outcome: u32,
    fate: &RegState,
    fence: Fence,
) -> Settled<L> {
    match outcome {
        VALID => {
            // SAFETY: The device has carried out the registration.
            let mr = unsafe { mr.into_valid() };
            if !fate.is_free_by(fence, &mr.pd().device) {
                return Settled::Valid(mr);
            }
            // SAFETY: `is_free_by` has found that the device has invalidated the region, and
            // that this is the fence `fence` on that device.
            let mut mr = unsafe { mr.into_free() };
            if fence.keeps_rights() {
                mr.keep_rights();
            }
            Settled::Free(mr)
        }
        LOST => {
            mr.leak();
            Settled::Stuck
        }
        _ => match mr.abandon() {
            Some(list) => {
                drop(list);
                Settled::Gone
            }
            None => Settled::Stuck,
        },
    }
}

impl<L: DmaList> Drop for EndpointMr<L> {
    fn drop(&mut self) {
        // SAFETY: The lender isn't used again.
        drop(unsafe { self.end(Fence::DEREGISTER) });
    }
}

/// The state of the registration of a lent region.
#[pin_data]
pub struct RegState {
    /// Of the region, which has another one each time that it is registered.
    key: Atomic<u32>,
    /// Of this device, for as long as the region is lent.
    device: DeviceId,
    state: Atomic<u32>,
    /// The peer has invalidated the region, by the queue pair on which it is lent.
    by_peer: Atomic<bool>,
    /// Its owner has, by an [`Invalidation`].
    by_owner: Atomic<bool>,
    #[pin]
    done: Done,
    /// For a list of regions that a peer may invalidate.
    #[pin]
    links: ListLinks,
    #[pin]
    tracker: AtomicTracker,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for RegState { tracked_by tracker: AtomicTracker; }
}

impl_list_item! {
    impl ListItem<0> for RegState { using ListLinks { self.links }; }
}

/// There is no request.
pub(crate) const NONE: u32 = 0;
/// A task is posting the request.
pub(crate) const GIVEN: u32 = 1;
pub(crate) const WAITING: u32 = 2;
/// The device has carried out the request.
pub(crate) const VALID: u32 = 3;
/// The device has not carried out the request, or its result is unknown.
pub(crate) const FAILED: u32 = 4;
/// The queue pair could not be destroyed, so all its requests were leaked, with their references to
/// regions.
pub(crate) const LOST: u32 = 5;

/// The receiver of the result of a registration or an invalidation. Dropping it reports a result,
/// too.
pub struct Registering(Arc<RegState>);

impl RegState {
    /// Returns the key of the region. Any context.
    pub fn key(&self) -> u32 {
        self.key.load(Relaxed)
    }

    /// Checks whether the region was not posted, or its registration has ended. Any context.
    pub fn is_settled(&self) -> bool {
        !self.is_given() || self.is_known()
    }

    /// Checks whether the registration has ended. Any context.
    pub fn is_known(&self) -> bool {
        self.state.load(Acquire) >= VALID
    }

    /// Notes that a peer has had a key invalidated, perhaps this one. The caller must report only
    /// the peer of the queue pair on which the region is lent: fences are about that peer. Any
    /// context.
    pub fn see(&self, invalidated: Invalidated<'_>) {
        if invalidated.key() == self.key() && invalidated.device() == self.device {
            self.by_peer.store(true, Release);
        }
    }

    /// Checks whether the device has registered the region. Any context.
    pub(crate) fn is_valid(&self) -> bool {
        self.state.load(Acquire) == VALID
    }

    /// Returns the result of the registration, which must have begun: [`VALID`], [`FAILED`] or
    /// [`LOST`]. Sleeps, uninterruptibly, until the registration [has ended](Self::is_known).
    pub(crate) fn outcome(&self) -> u32 {
        if !self.is_known() {
            self.done.wait();
        }
        self.await_known();
        self.state.load(Acquire)
    }

    /// Waits for the state that [`end`](Self::end) sets next. Sleeps, if at all, for a moment.
    fn await_known(&self) {
        while !self.is_known() {
            fsleep(Delta::from_micros(10));
        }
    }

    /// Checks whether there is a request, or has been. Any context.
    pub(crate) fn is_given(&self) -> bool {
        self.state.load(Acquire) != NONE
    }

    /// Checks whether anybody has invalidated the region. Any context.
    pub fn is_invalidated(&self) -> bool {
        self.is_invalidated_by_peer() || self.by_owner.load(Acquire)
    }

    /// Checks whether the peer has invalidated the region. Any context.
    pub fn is_invalidated_by_peer(&self) -> bool {
        self.by_peer.load(Acquire)
    }

    /// Makes the fate of a region with this key. There is no request yet. May sleep.
    pub(crate) fn new(key: u32, device: DeviceId) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                key: Atomic::new(key),
                device,
                state: Atomic::new(NONE),
                by_peer: Atomic::new(false),
                by_owner: Atomic::new(false),
                done <- Done::new(),
                links <- ListLinks::new(),
                tracker <- AtomicTracker::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Checks whether the region has been invalidated, and that is this fence.
    pub(crate) fn is_free_by(&self, fence: Fence, device: &Device) -> bool {
        (self.is_invalidated_by_peer() && fence.trusts_peer_on(device))
            || (self.is_invalidated() && fence.invalidates_on(device))
    }

    /// Waits at most `seconds` seconds until the end is known, and returns whether it is. Sleeps, uninterruptibly.
    pub fn wait(&self, seconds: u32) -> bool {
        let mut known = self.is_known();
        for _ in 0..seconds {
            known = known || self.done.nap();
        }
        if known {
            self.await_known();
        }
        known
    }

    /// Begins anew, for a request about a region with this key. There is none, or it has ended, and the state is in no
    /// list. Any context.
    pub(crate) fn renew(&self, key: u32) {
        self.key.store(key, Relaxed);
        self.by_peer.store(false, Relaxed);
        self.by_owner.store(false, Relaxed);
        self.done.renew();
        self.state.store(NONE, Release);
    }

    /// Has a request posted by `post`, and returns whether there is one now, whatever `post` says. Any
    /// context.
    pub(crate) fn give<E>(&self, post: impl FnOnce() -> Result<(), E>) -> Result<bool, E> {
        self.state.store(GIVEN, Relaxed);
        let posted = post();
        match self.state.cmpxchg(GIVEN, WAITING, Full) {
            // It was dropped, and nothing is waited for.
            Err(NONE) => posted.map(|()| false),
            // It is on its way, or has ended meanwhile.
            _ => Ok(true),
        }
    }

    /// Notes that the request was dropped, unless it has ended: the task that posts it finds it gone. Any context.
    pub(crate) fn take_back(&self) {
        if self.state.cmpxchg(GIVEN, NONE, Full) == Err(WAITING) {
            self.end(FAILED);
        }
    }

    /// Notes how the request has ended. Its owner may [renew](Self::renew) this as soon as the state is set, so that
    /// comes last.
    fn end(&self, state: u32) {
        self.done.complete();
        self.state.store(state, Release);
    }

    /// Notes how the request has ended. Any context.
    pub(crate) fn end_by(&self, result: Result<(), WrError>) {
        self.end(match result {
            Ok(()) => VALID,
            Err(WrError::Lost) => LOST,
            Err(_) => FAILED,
        });
    }
}

/// An invalidation of a lent region.
pub struct Invalidation {
    own: Arc<RegState>,
    of: Arc<RegState>,
}

impl Invalidation {
    pub(crate) fn new(own: Arc<RegState>, of: Arc<RegState>) -> Self {
        Self { own, of }
    }

    /// Waits at most `seconds` seconds until the invalidation has ended, and with it the
    /// registration before it. Returns whether it has. Sleeps, uninterruptibly.
    pub fn wait(&self, seconds: u32) -> bool {
        let ended = self.own.wait(seconds);
        if ended && self.own.is_valid() {
            self.of.by_owner.store(true, Release);
        }
        ended
    }
}

impl<K: Send + 'static> CompletionHandler<WorkRequest<K>> for Registering {
    fn ended(self, ended: CompletedRequest<'_>) {
        self.0.end_by(ended.result.map(|_| ()));
    }
}

impl Drop for Registering {
    fn drop(&mut self) {
        // The request's references are released.
        self.0.take_back();
    }
}

#[kernel::macros::kunit_tests(rdma_lent)]
mod tests {
    use super::*;
    use crate::wc::RawCompletion;
    use rdma_bindings as b;

    /// Posts a request, and returns whether there is one.
    fn give(
        fate: &Arc<RegState>,
        post: impl FnOnce(Registering) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        fate.give(|| post(Registering(fate.clone())))
    }

    /// Has a completion queue of the device at this address say that a peer has had a key invalidated.
    fn said(key: u32, device: usize, to: impl FnOnce(Invalidated<'_>)) -> Result {
        let zeroed = GFP_KERNEL | kernel::alloc::flags::__GFP_ZERO;
        // SAFETY: All of a `struct ib_cq` may be 0.
        let mut cq = unsafe { KBox::<b::ib_cq>::new_uninit(zeroed)?.assume_init() };
        cq.device = core::ptr::without_provenance_mut(device);
        let mut wc = b::ib_wc {
            opcode: b::ib_wc_opcode_IB_WC_RECV,
            wc_flags: i32::try_from(b::ib_wc_flags_IB_WC_WITH_INVALIDATE)?,
            ..Default::default()
        };
        // SAFETY: This is the member that goes with the flag.
        *unsafe { wc.ex.invalidate_rkey.as_mut() } = key;
        // SAFETY: `cq` is there until this function returns.
        let completion = unsafe { RawCompletion::new(&raw const *cq, &wc) };
        completion.arrival().1.map(to).ok_or(EINVAL)
    }

    #[test]
    fn another_keys_invalidation_is_not_this_ones() -> Result {
        const KEY: u32 = 0x0012_3456;
        let mut device = DeviceId::NONE;
        said(KEY, 8, |invalidated| device = invalidated.device())?;
        let fate = RegState::new(KEY, device)?;
        // One bit of the key, the same region with another key, and the same key of another device.
        for other in [KEY ^ 1, KEY ^ 1 << 8, KEY ^ 1 << 31, KEY & 0xff, 0] {
            said(other, 8, |invalidated| fate.see(invalidated))?;
            assert!(!fate.is_invalidated());
        }
        said(KEY, 16, |invalidated| fate.see(invalidated))?;
        assert!(!fate.is_invalidated());
        said(KEY, 8, |invalidated| fate.see(invalidated))?;
        assert!(fate.is_invalidated_by_peer());
        Ok(())
    }

    #[test]
    fn dropped_is_not_posted() -> Result {
        let fate = RegState::new(7, DeviceId::NONE)?;
        assert!(!fate.is_given());
        let refused = |request| {
            drop(request);
            Err(EAGAIN)
        };
        assert_eq!(give(&fate, refused), Err(EAGAIN));
        let forgotten = |request| {
            drop(request);
            Ok(())
        };
        assert_eq!(give(&fate, forgotten), Ok(false));
        assert!(!fate.is_given());
        Ok(())
    }

    #[test]
    fn kept_is_posted_and_ends_when_dropped() -> Result {
        let fate = RegState::new(7, DeviceId::NONE)?;
        let mut kept = None;
        let lies = |request| {
            kept = Some(request);
            Err(EAGAIN)
        };
        assert_eq!(give(&fate, lies), Ok(true));
        assert!(fate.is_given() && !fate.is_known());
        drop(kept);
        assert!(fate.is_known() && fate.wait(0));
        assert_eq!(fate.outcome(), FAILED);
        Ok(())
    }

    #[test]
    fn may_end_while_it_is_posted() -> Result {
        let fate = RegState::new(7, DeviceId::NONE)?;
        let at_once = |request: Registering| {
            request.0.end(VALID);
            Ok(())
        };
        assert_eq!(give(&fate, at_once), Ok(true));
        assert!(fate.is_valid() && fate.outcome() == VALID);
        Ok(())
    }
}
