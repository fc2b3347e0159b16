// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered by a request on their consumer's queue pair, for which nobody waits.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    }, //
};

use core::mem::ManuallyDrop;

use crate::{
    completion::Done,
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
    posted: bool,
}

/// What has become of the registration of a lent region.
#[pin_data]
pub struct Fate {
    key: u32,
    state: Atomic<u32>,
    /// The peer has invalidated the region, by the queue pair on which it is lent.
    by_peer: Atomic<bool>,
    /// Its owner has, by an [`Invalidation`].
    by_owner: Atomic<bool>,
    #[pin]
    done: Done,
}

const WAITING: u32 = 0;
const VALID: u32 = 1;
const FAILED: u32 = 2;
const LOST: u32 = 3;

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

/// Tells what becomes of a registration, or of an invalidation.
pub struct Registering(Arc<Fate>);

impl Fate {
    /// The key of the region. Any context.
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Whether the registration has ended. Any context.
    pub fn is_known(&self) -> bool {
        self.state.load(Acquire) != WAITING
    }

    /// The peer of the queue pair on which the region is lent had a key invalidated: perhaps this one. Any
    /// context.
    pub fn see(&self, invalidated: Invalidated) {
        if invalidated.key() == self.key {
            self.by_peer.store(true, Release);
        }
    }

    /// Whether anybody has invalidated the region. Any context.
    pub fn is_invalidated(&self) -> bool {
        self.is_invalidated_by_peer() || self.by_owner.load(Acquire)
    }

    /// Whether the peer has. Any context.
    pub fn is_invalidated_by_peer(&self) -> bool {
        self.by_peer.load(Acquire)
    }

    fn new(key: u32) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                key,
                state: Atomic::new(WAITING),
                by_peer: Atomic::new(false),
                by_owner: Atomic::new(false),
                done <- Done::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether the region has been invalidated, and that is this fence.
    fn is_free_by(&self, fence: Fence, mr: &ValidMr) -> bool {
        let device = mr.pd().device();
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
    fn ended(self, ended: Ended<WorkRequest<K>>) {
        // Given back before it is asked for.
        drop(ended.request);
        self.0.end(match ended.result {
            Ok(_) => VALID,
            Err(WrError::Lost) => LOST,
            Err(_) => FAILED,
        });
    }
}

impl<L: DmaList> PreparedMr<L> {
    /// Gets ready to lend the region to requests, with its next key. May sleep.
    pub fn lend(mut self) -> Result<LentMr<L>> {
        self.next_key();
        let key = self.rkey();
        let fate = Fate::new(key)?;
        Ok(LentMr {
            lender: ManuallyDrop::new(Lender::new(self)?),
            fate,
            posted: false,
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
    /// - What `post` says.
    pub fn register(
        &mut self,
        post: impl FnOnce(
            KBox<Request<RegionWr<L>, Registering>>,
        ) -> Result<(), NotPosted<RegionWr<L>, Registering>>,
    ) -> Result {
        if self.posted {
            return Err(EBUSY);
        }
        let register = WorkRequest::register(self.lender.lend());
        let request = Request::new(register, Registering(self.fate.clone()), GFP_ATOMIC)?;
        post(request).map_err(|not| not.error)?;
        self.posted = true;
        Ok(())
    }

    /// A request that invalidates it, to be posted behind its registration, and what to wait for then. May
    /// sleep.
    ///
    /// It names a key, and nothing that would have to stay.
    pub fn invalidate(&self) -> Result<(InvalidationWr, Invalidation)> {
        let own = Fate::new(self.fate.key)?;
        let invalidate = WorkRequest::invalidate_key((), self.fate.key);
        let request = Request::new(invalidate, Registering(own.clone()), GFP_KERNEL)?;
        let of = self.fate.clone();
        Ok((request, Invalidation { own, of }))
    }

    /// Whether it was not posted, or its registration has ended. Any context.
    pub fn is_settled(&self) -> bool {
        !self.posted || self.fate.is_known()
    }

    /// Waits until that is so, at most so many seconds, and returns whether it is. Sleeps, uninterruptibly.
    pub fn wait(&self, seconds: u32) -> bool {
        self.is_settled() || self.fate.wait(seconds)
    }
}

impl<L: DmaList> LentMr<L> {
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
            Settled::Valid(mr) if fate.is_free_by(fence, &mr) => {
                let access = mr.access();
                // SAFETY: The device has said that it is invalid, which is a fence there.
                let mut mr = unsafe { mr.into_free() };
                if fence.keeps_rights() {
                    mr.keep_rights(access);
                }
                Settled::Free(mr)
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
        if !self.posted {
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

impl<L: DmaList> Drop for LentMr<L> {
    fn drop(&mut self) {
        // SAFETY: The lender isn't used again.
        drop(unsafe { self.end() });
    }
}
