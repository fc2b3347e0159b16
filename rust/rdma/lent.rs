// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered by a request on their consumer's queue pair, for which nobody waits.

use kernel::{
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

use core::mem::ManuallyDrop;

use crate::{
    completion::Done,
    device::Device,
    lend::{
        Lender,
        Loan, //
    },
    mr::{
        FastMr,
        Fence,
        PreparedMr,
        ValidMr, //
    },
    request::{
        Ended,
        NotPosted,
        Request,
        Then, //
    },
    sg::DmaList,
    wc::{
        DeviceId,
        Invalidated,
        WrError, //
    },
    wr::WorkRequest, //
};

/// A request that registers a lent region.
pub type RegionWr<L> = WorkRequest<Loan<PreparedMr<L>>>;

/// A request that invalidates a lent region.
pub type InvalidationWr = KBox<Request<WorkRequest<()>, Registering>>;

/// A region that is lent to requests.
///
/// The key is good for whoever gets it by something that is posted behind the registration, on the same
/// queue pair. For all others it is when the registration has [ended](Fate::is_known).
///
/// To be ended by [`LentMr::settle`]. Dropping it does the same, and sleeps as that.
pub struct LentMr<L: DmaList> {
    /// Taken out once, when this ends.
    lender: ManuallyDrop<Lender<PreparedMr<L>>>,
    fate: Arc<Fate>,
}

/// What has become of the registration of a lent region.
#[pin_data]
pub struct Fate {
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

/// What has become of a lent region.
pub enum Settled<L> {
    /// It was not posted.
    Unposted(PreparedMr<L>),
    /// The device has registered it.
    Valid(ValidMr),
    /// A peer has invalidated it, which was a fence.
    Free(FastMr),
    /// It could not be registered, or that isn't known; it has been deregistered.
    Gone,
    /// The device won't let go of it: it has been leaked, with its mapping, and its memory must never
    /// be freed.
    Stuck,
}

/// Tells what becomes of a registration, or of an invalidation; also of one that is dropped.
pub struct Registering(Arc<Fate>);

impl Fate {
    /// The key of the region. Any context.
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Whether the registration has ended. Any context.
    pub fn is_known(&self) -> bool {
        self.state.load(Acquire) >= VALID
    }

    /// A peer has had a key invalidated: perhaps this one. To be told of the peer of the queue pair on which
    /// the region is lent, which is the one that fences are about. Any context.
    pub fn see(&self, invalidated: Invalidated<'_>) {
        if invalidated.key() == self.key && invalidated.device() == self.device {
            self.by_peer.store(true, Release);
        }
    }

    /// Whether there is a request, or has been. Any context.
    fn is_given(&self) -> bool {
        self.state.load(Acquire) != NONE
    }

    /// Whether anybody has invalidated the region. Any context.
    pub fn is_invalidated(&self) -> bool {
        self.is_invalidated_by_peer() || self.by_owner.load(Acquire)
    }

    /// Whether the peer has. Any context.
    pub fn is_invalidated_by_peer(&self) -> bool {
        self.by_peer.load(Acquire)
    }

    fn new(key: u32, device: DeviceId) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                key,
                device,
                state: Atomic::new(NONE),
                by_peer: Atomic::new(false),
                by_owner: Atomic::new(false),
                done <- Done::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether the region has been invalidated, and that is this fence.
    fn is_free_by(&self, fence: Fence, device: &Device) -> bool {
        (self.is_invalidated_by_peer() && fence.trusts_peer_on(device))
            || (self.is_invalidated() && fence.invalidates_on(device))
    }

    /// Waits until it is known, at most so many seconds, and returns whether it is.
    fn wait(&self, seconds: u32) -> bool {
        let mut known = self.is_known();
        for _ in 0..seconds {
            known = known || self.done.nap();
        }
        known
    }

    /// Has a request posted by `post`, and returns whether there is one now, whatever `post` says. Any
    /// context.
    fn give<E>(&self, post: impl FnOnce() -> Result<(), E>) -> Result<bool, E> {
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
    own: Arc<Fate>,
    of: Arc<Fate>,
}

impl Invalidation {
    /// Waits until it has ended, and with it the registration before it; at most so many seconds. Returns
    /// whether it has. Sleeps, uninterruptibly.
    pub fn wait(&self, seconds: u32) -> bool {
        let ended = self.own.wait(seconds);
        if ended && self.own.state.load(Acquire) == VALID {
            self.of.by_owner.store(true, Release);
        }
        ended
    }
}

impl<K: Send + 'static> Then<WorkRequest<K>> for Registering {
    fn ended(self, ended: Ended<'_, WorkRequest<K>>) {
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
        // Who gives it finds it gone. What the request refers to has been let go of.
        if self.0.state.cmpxchg(GIVEN, NONE, Full) == Err(WAITING) {
            self.0.end(FAILED);
        }
    }
}

impl<L: DmaList> PreparedMr<L> {
    /// Gets ready to lend the region to requests, with its next key. May sleep.
    pub fn lend(mut self) -> Result<LentMr<L>> {
        self.next_key();
        let key = self.rkey();
        let fate = Fate::new(key, DeviceId::of(self.pd().device()))?;
        Ok(LentMr {
            lender: ManuallyDrop::new(Lender::new(self)?),
            fate,
        })
    }
}

impl<L: DmaList + Send + Sync + 'static> LentMr<L> {
    /// The region, with the key that it is going to have. Any context.
    pub fn prepared(&self) -> &PreparedMr<L> {
        self.lender.get()
    }

    /// What becomes of its registration.
    pub fn fate(&self) -> &Arc<Fate> {
        &self.fate
    }

    /// Has it registered by a request, which `post` posts. Any context. After an error nothing was
    /// posted.
    ///
    /// # Errors
    ///
    /// - `EBUSY` if that was done before.
    /// - `ENOMEM`
    /// - `EINVAL` if `post` has dropped the request, and says nothing.
    /// - What `post` says.
    pub fn register(
        &mut self,
        post: impl FnOnce(
            KBox<Request<RegionWr<L>, Registering>>,
        ) -> Result<(), NotPosted<RegionWr<L>, Registering>>,
    ) -> Result {
        if self.fate.is_given() {
            return Err(EBUSY);
        }
        let register = WorkRequest::register(self.lender.lend());
        let request = Request::new(register, Registering(self.fate.clone()), GFP_ATOMIC)?;
        match self.fate.give(|| post(request).map_err(|not| not.error))? {
            true => Ok(()),
            false => Err(EINVAL),
        }
    }

    /// A request that invalidates it, to be posted behind its registration, and what to wait for then. May
    /// sleep.
    ///
    /// It names a key, and nothing that would have to stay.
    pub fn invalidate(&self) -> Result<(InvalidationWr, Invalidation)> {
        let own = Fate::new(self.fate.key, self.fate.device)?;
        own.state.store(WAITING, Relaxed);
        let invalidate = WorkRequest::invalidate_key((), self.fate.key);
        let request = Request::new(invalidate, Registering(own.clone()), GFP_KERNEL)?;
        let of = self.fate.clone();
        Ok((request, Invalidation { own, of }))
    }

    /// Whether it was not posted, or its registration has ended. Any context.
    pub fn is_settled(&self) -> bool {
        !self.fate.is_given() || self.fate.is_known()
    }

    /// Waits until that is so, at most so many seconds, and returns whether it is. Sleeps, uninterruptibly.
    pub fn wait(&self, seconds: u32) -> bool {
        self.is_settled() || self.fate.wait(seconds)
    }
}

impl<L: DmaList> LentMr<L> {
    /// Whether the device has registered it, and it has been invalidated since, which is this fence. Any context.
    pub fn is_free_by(&self, fence: Fence) -> bool {
        self.fate.state.load(Acquire) == VALID
            && self.fate.is_free_by(fence, self.lender.get().pd().device())
    }

    /// The device region, if it [is free](Self::is_free_by) by this fence: what [`settle`](Self::settle) would say,
    /// but it hasn't to be waited for. Any context.
    pub fn into_free(self, fence: Fence) -> Result<FastMr, Self> {
        if !self.is_free_by(fence) {
            return Err(self);
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again, so each is taken once.
        let lender = unsafe {
            core::ptr::drop_in_place(&mut this.fate);
            ManuallyDrop::take(&mut this.lender)
        };
        // SAFETY: The device has carried out the registration, as was seen. So its request has ended, and its loan
        // is back.
        let mr = unsafe { lender.take_back().into_valid() };
        // SAFETY: It is free by the fence.
        Ok(unsafe { free(mr, fence) })
    }

    /// Says what has become of it; with a fence that trusts a peer's invalidation, it may be free by one.
    /// Sleeps until all its requests have ended, for whose queue pair to end, if need be, the caller is
    /// to see.
    pub fn settle(self, fence: Fence) -> Settled<L> {
        let fate = self.fate.clone();
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        let settled = unsafe { this.end() };
        // SAFETY: `this` is never dropped, so nobody else drops its fate.
        unsafe { core::ptr::drop_in_place(&mut this.fate) };
        match settled {
            Settled::Valid(mr) if fate.is_free_by(fence, mr.pd().device()) => {
                // SAFETY: As was just asked.
                Settled::Free(unsafe { free(mr, fence) })
            }
            settled => settled,
        }
    }

    /// # Safety
    ///
    /// To be called once, and the last that is done with the lender.
    unsafe fn end(&mut self) -> Settled<L> {
        // SAFETY: By the requirements of this function.
        let lender = unsafe { ManuallyDrop::take(&mut self.lender) };
        if !self.fate.is_given() {
            return Settled::Unposted(lender.take_back());
        }
        self.fate.done.wait();
        match self.fate.state.load(Acquire) {
            // SAFETY: The device has carried out the registration.
            VALID => Settled::Valid(unsafe { lender.take_back().into_valid() }),
            LOST => {
                // SAFETY: The queue pair could not be destroyed, so all its requests were leaked, with
                // their loans.
                unsafe { lender.take_lost() }.leak();
                Settled::Stuck
            }
            _ => match lender.take_back().abandon() {
                Some(list) => {
                    drop(list);
                    Settled::Gone
                }
                None => Settled::Stuck,
            },
        }
    }
}

/// The region is free.
///
/// # Safety
///
/// The device must have said that it is invalid, and that be this fence there.
unsafe fn free(mr: ValidMr, fence: Fence) -> FastMr {
    // SAFETY: By the requirements of this function.
    let mut mr = unsafe { mr.into_free() };
    if fence.keeps_rights() {
        mr.keep_rights();
    }
    mr
}

impl<L: DmaList> Drop for LentMr<L> {
    fn drop(&mut self) {
        // SAFETY: The lender isn't used again.
        drop(unsafe { self.end() });
    }
}

#[kernel::macros::kunit_tests(rdma_lent)]
mod tests {
    use super::*;

    /// A request on its way, and whether there is one.
    fn give(
        fate: &Arc<Fate>,
        post: impl FnOnce(Registering) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        fate.give(|| post(Registering(fate.clone())))
    }

    #[test]
    fn dropped_is_not_posted() -> Result {
        let fate = Fate::new(7, DeviceId::NONE)?;
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
        let fate = Fate::new(7, DeviceId::NONE)?;
        let mut kept = None;
        let lies = |request| {
            kept = Some(request);
            Err(EAGAIN)
        };
        assert_eq!(give(&fate, lies), Ok(true));
        assert!(fate.is_given() && !fate.is_known());
        drop(kept);
        assert!(fate.is_known() && fate.wait(0));
        fate.done.wait();
        Ok(())
    }

    #[test]
    fn may_end_while_it_is_posted() -> Result {
        let fate = Fate::new(7, DeviceId::NONE)?;
        let at_once = |request: Registering| {
            request.0.end(VALID);
            Ok(())
        };
        assert_eq!(give(&fate, at_once), Ok(true));
        assert_eq!(fate.state.load(Acquire), VALID);
        Ok(())
    }
}
