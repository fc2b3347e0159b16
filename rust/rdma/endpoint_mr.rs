// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered by a request on their consumer's queue pair, for which nobody waits.

mod reg_state;

pub use self::reg_state::{
    Invalidation,
    RegState,
    Registering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use core::mem::ManuallyDrop;

use self::reg_state::Outcome;
use crate::{
    in_flight::{
        InFlight,
        InFlightRef,
        StableRef, //
    },
    mr::{
        FastMr,
        Fence,
        PreparedMr,
        ValidMr, //
    },
    request::{
        CompletionHandler,
        NotPosted,
        Request, //
    },
    sg::DmaList,
    wc::DeviceId,
    wr::{
        SendWr,
        WorkRequest, //
    }, //
};

/// A request that registers a lent region.
pub type EndpointRegWr<L> = WorkRequest<InFlightRef<PreparedMr<L>>>;

/// A request that ends a lent region, whose end `F` is told.
pub type InvalidationWr<F> = KBox<Request<WorkRequest<()>, F>>;

/// A region that is lent to requests.
///
/// The key is good for whoever gets it by something that is posted behind the registration, on the same
/// queue pair. For all others it is when the registration has [ended](RegState::is_known).
///
/// To be ended by [`EndpointMr::settle`]. Dropping it does the same, and sleeps as that.
pub struct EndpointMr<L: DmaList> {
    /// Taken out once, when this ends.
    lender: ManuallyDrop<InFlight<PreparedMr<L>>>,
    fate: Arc<RegState>,
}

/// The result of lending a region.
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

impl<L: DmaList> PreparedMr<L> {
    /// Gets ready to lend the region to requests, with its next key. May sleep.
    pub fn lend(mut self) -> Result<EndpointMr<L>> {
        self.next_key();
        let key = self.rkey();
        let fate = RegState::new(key, DeviceId::of(self.pd().device()))?;
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

    /// Has it registered by a request, which `post` posts. The request tells what `then` returns, which must pass its
    /// end on. Any context. After an error nothing was posted.
    ///
    /// # Errors
    ///
    /// - `EBUSY` if that was done before.
    /// - `ENOMEM`
    /// - `EINVAL` if `post` has dropped the request, and says nothing.
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
        let request = Request::new(register, then(Registering::new(&self.fate)), GFP_ATOMIC)?;
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
        let (invalidation, invalidating) = Invalidation::new(&self.fate)?;
        let behind = match self.fate.is_invalidated() {
            true => WorkRequest::empty(),
            false => WorkRequest::new(SendWr::invalidate(self.fate.key()), ()),
        };
        let request = Request::new(behind, then(invalidating), GFP_KERNEL)?;
        Ok((request, invalidation))
    }

    /// Checks whether the region was not posted, or its registration has ended. Any context.
    pub fn is_settled(&self) -> bool {
        !self.fate.is_given() || self.fate.is_known()
    }

    /// Waits at most `seconds` seconds until the registration is settled, and returns whether it
    /// is. Sleeps, uninterruptibly.
    pub fn wait(&self, seconds: u32) -> bool {
        self.is_settled() || self.fate.wait(seconds)
    }
}

impl<L: DmaList> EndpointMr<L> {
    /// Checks whether the device has registered the region, and it has been invalidated since,
    /// which is this fence. Any context.
    pub fn is_free_by(&self, fence: Fence) -> bool {
        self.fate.is_valid() && self.fate.is_free_by(fence, self.lender.get().pd().device())
    }

    /// Returns the result of lending the region. With a fence that trusts a peer's invalidation,
    /// the region may be free by one. Sleeps until all its requests have ended, unless it
    /// [is settled](Self::is_settled). If need be, the caller must end their queue pair.
    pub fn settle(self, fence: Fence) -> Settled<L> {
        let fate = self.fate.clone();
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        let settled = unsafe { this.end() };
        // SAFETY: `this` is never dropped, so nobody else drops its fate.
        unsafe { core::ptr::drop_in_place(&mut this.fate) };
        match settled {
            Settled::Valid(mr) if fate.is_free_by(fence, mr.pd().device()) => {
                // SAFETY: `is_free_by` has found that the device has invalidated the region, and
                // that this is the fence `fence` on that device.
                let mut mr = unsafe { mr.into_free() };
                if fence.keeps_rights() {
                    mr.keep_rights();
                }
                Settled::Free(mr)
            }
            settled => settled,
        }
    }

    /// Ends lending the region, and returns the result. Sleeps until all its requests have ended.
    ///
    /// # Safety
    ///
    /// The caller must call this once, and must not use the lender afterwards.
    unsafe fn end(&mut self) -> Settled<L> {
        // SAFETY: The caller promises that this is the only call, and the last use of the lender.
        let lender = unsafe { ManuallyDrop::take(&mut self.lender) };
        if !self.fate.is_given() {
            return Settled::Unposted(lender.take_back());
        }
        match self.fate.outcome() {
            // SAFETY: The device has carried out the registration.
            Outcome::Valid => Settled::Valid(unsafe { lender.take_back().into_valid() }),
            Outcome::Lost => {
                // SAFETY: The queue pair could not be destroyed, so all its requests were leaked, with
                // their loans.
                unsafe { lender.take_lost() }.leak();
                Settled::Stuck
            }
            Outcome::Failed => match lender.take_back().abandon() {
                Some(list) => {
                    drop(list);
                    Settled::Gone
                }
                None => Settled::Stuck,
            },
        }
    }
}

impl<L: DmaList> Drop for EndpointMr<L> {
    fn drop(&mut self) {
        // SAFETY: The lender isn't used again.
        drop(unsafe { self.end() });
    }
}
