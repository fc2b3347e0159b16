// SPDX-License-Identifier: GPL-2.0

//! The fate of the registration of a lent region, and of its invalidation.

use kernel::{
    list::{
        impl_list_arc_safe,
        impl_list_item,
        AtomicTracker,
        ListLinks,
        TryNewListArc, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

use crate::{
    completion::Done,
    device::Device,
    mr::Fence,
    request::{
        CompletedRequest,
        CompletionHandler, //
    },
    wc::{
        DeviceId,
        Invalidated,
        WrError, //
    },
    wr::WorkRequest, //
};

/// The state of the registration of a lent region.
#[pin_data]
pub struct RegState {
    key: u32,
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
const NONE: u32 = 0;
/// There is one, which is just being posted.
const GIVEN: u32 = 1;
const WAITING: u32 = 2;
// It has ended.
const VALID: u32 = 3;
const FAILED: u32 = 4;
const LOST: u32 = 5;

/// How a registration has ended.
pub(super) enum Outcome {
    /// The device has carried it out.
    Valid,
    /// It has not, or that isn't known.
    Failed,
    /// The queue pair could not be destroyed, so all its requests were leaked, with their loans.
    Lost,
}

/// Tells what becomes of a registration, or of an invalidation; also of one that is dropped.
pub struct Registering(Arc<RegState>);

impl Registering {
    /// Makes the part that a request carries.
    pub(super) fn new(fate: &Arc<RegState>) -> Self {
        Self(fate.clone())
    }
}

impl RegState {
    /// Returns the key of the region. Any context.
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Checks whether the registration has ended. Any context.
    pub fn is_known(&self) -> bool {
        self.state.load(Acquire) >= VALID
    }

    /// Notes that a peer has had a key invalidated, perhaps this one. The caller must report only
    /// the peer of the queue pair on which the region is lent: fences are about that peer. Any
    /// context.
    pub fn see(&self, invalidated: Invalidated<'_>) {
        if invalidated.key() == self.key && invalidated.device() == self.device {
            self.by_peer.store(true, Release);
        }
    }

    /// Checks whether the device has registered the region. Any context.
    pub(super) fn is_valid(&self) -> bool {
        self.state.load(Acquire) == VALID
    }

    /// Returns how the registration has ended. There must be one. Sleeps, uninterruptibly, until it
    /// [has ended](Self::is_known).
    pub(super) fn outcome(&self) -> Outcome {
        if !self.is_known() {
            self.done.wait();
        }
        match self.state.load(Acquire) {
            VALID => Outcome::Valid,
            LOST => Outcome::Lost,
            _ => Outcome::Failed,
        }
    }

    /// Checks whether there is a request, or has been. Any context.
    pub(super) fn is_given(&self) -> bool {
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
    pub(super) fn new(key: u32, device: DeviceId) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                key,
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
    pub(super) fn is_free_by(&self, fence: Fence, device: &Device) -> bool {
        (self.is_invalidated_by_peer() && fence.trusts_peer_on(device))
            || (self.is_invalidated() && fence.invalidates_on(device))
    }

    /// Waits at most `seconds` seconds until the end is known, and returns whether it is.
    pub(super) fn wait(&self, seconds: u32) -> bool {
        let mut known = self.is_known();
        for _ in 0..seconds {
            known = known || self.done.nap();
        }
        known
    }

    /// Has a request posted by `post`, and returns whether there is one now, whatever `post` says. Any
    /// context.
    pub(super) fn give<E>(&self, post: impl FnOnce() -> Result<(), E>) -> Result<bool, E> {
        self.state.store(GIVEN, Relaxed);
        let posted = post();
        match self.state.cmpxchg(GIVEN, WAITING, Full) {
            // It was dropped, and nothing is waited for.
            Err(NONE) => posted.map(|()| false),
            // It is on its way, or has ended meanwhile.
            _ => Ok(true),
        }
    }

    fn end(&self, state: u32) {
        self.state.store(state, Release);
        self.done.complete();
    }
}

/// An invalidation of a lent region.
pub struct Invalidation {
    own: Arc<RegState>,
    of: Arc<RegState>,
}

impl Invalidation {
    /// Makes an invalidation of the region whose fate is `of`, and the part that its request
    /// carries. May sleep.
    pub(super) fn new(of: &Arc<RegState>) -> Result<(Self, Registering)> {
        let own = RegState::new(of.key, of.device)?;
        own.state.store(WAITING, Relaxed);
        let invalidating = Registering::new(&own);
        let of = of.clone();
        Ok((Self { own, of }, invalidating))
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
    fn ended(self, ended: CompletedRequest<'_, WorkRequest<K>>) {
        // Given back before it is asked for.
        drop(ended.request);
        self.0.end(match ended.result {
            Ok(_) => VALID,
            Err(WrError::Lost) => LOST,
            Err(_) => FAILED,
        });
    }
}

impl Drop for Registering {
    fn drop(&mut self) {
        // The task that posts the request finds it gone. The request's references are released.
        if self.0.state.cmpxchg(GIVEN, NONE, Full) == Err(WAITING) {
            self.0.end(FAILED);
        }
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
        fate.give(|| post(Registering::new(fate)))
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
        let completion = unsafe { RawCompletion::new(&raw const *cq, &wc) }.read();
        completion.invalidated().map(to).ok_or(EINVAL)
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
        assert!(matches!(fate.outcome(), Outcome::Failed));
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
        assert!(fate.is_valid() && matches!(fate.outcome(), Outcome::Valid));
        Ok(())
    }
}
