// SPDX-License-Identifier: GPL-2.0

//! The queue pair of registrations: it carries requests that register and invalidate regions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! These requests need a connected queue pair, although they send nothing to a peer. A key is valid
//! on all queue pairs of its protection domain. So one queue pair that carries no data is enough
//! for all regions of a domain. It may be connected to itself.

mod probe;
mod wait;

use crate::{
    cq::Cq,
    credits::Credit,
    mr::{
        deregister_all,
        RefreshError,
        RegisterError, //
    },
    prelude::*,
    qp::{
        Qp,
        ReadyToSend, //
    },
    waiter::Waiter,
    wr_batch::{
        PostError,
        RegionWr,
        WrBatch, //
    }, //
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    new_mutex,
    sync::Mutex, //
};
use pin_init::stack_pin_init;
use rdma_bindings as b;

/// A connected queue pair and its completion queue, for requests about regions.
///
/// Any number of tasks may use it at once. Each task posts its work requests and waits until they
/// have completed. It polls for a moment, then sleeps. The depth of the queue limits the number of
/// requests of all tasks that are under way.
///
/// A work request that the device fails puts the queue pair into error for good. Then the device
/// flushes all requests that follow. Regions and their keys belong to the protection domain, so
/// they survive the error: create a new queue pair and continue there. A request that the driver
/// refuses at once affects no other request.
///
/// # Requests that don't complete
///
/// Every wait ends. When a request has not completed within the queue pair's time limit, the queue
/// pair is put into error and drained. That ends every request that the device still knows. A
/// request that ends this way has [timed out](crate::WrError::TimedOut). If a request doesn't end,
/// the queue pair is destroyed. Only then may the memory of the request be freed, since nothing
/// carries it out any more. If even destroying fails, the request is [lost](crate::WrError::Lost).
/// The region of a lost request is leaked. Its completion queue is no longer polled, so a late
/// completion has no effect.
///
/// # Destruction
///
/// Dropping it destroys the queue pair, then the completion queue, and may sleep. The queue needs
/// no draining then. Each posted request has a task that waits for its completion inside a method
/// of the queue pair. While a task is inside, it has a reference.
///
/// # Invariants
///
/// `raw` is the queue pair that `state` has or had. It is destroyed only when `up` is false and
/// nobody is counted in `posting` since, or when nobody else has a reference.
///
/// Lock order: `state`, then anything of the RDMA core, and its completion queue's. Only the
/// request of a drain is posted under it. A task that holds it waits for the device for a few time
/// limits at most.
///
/// # Examples
///
/// ```ignore
/// let queue = RegQp::new(connected, 60)?;
/// // Reachable for peers when this has returned, by the keys that the regions have then.
/// let mut valid = None;
/// let registered = queue.register_all(SmallVec::one(prepared), |mr| valid = Some(mr));
/// registered.map_err(|failed| failed.error)?;
/// ...
/// queue.revoke_all(SmallVec::one(valid.ok_or(EIO)?), fence, |free| pool.give(free))?;
/// ```
#[pin_data(PinnedDrop)]
pub struct RegQp {
    pd: Arc<Pd>,
    /// How long a request may take, in seconds.
    limit: u32,
    /// The completion queue of the requests. Dropped before `sends`, to which its completions
    /// refer.
    cq: Arc<Cq>,
    sends: Arc<Outstanding>,
    #[pin]
    state: Mutex<State>,
    /// The queue pair, for tasks that `posting` counts and that have found `up` set.
    raw: NonNull<rdma_bindings::ib_qp>,
    /// True until [`RegQp::fail`] is called. Changes under the lock of `state`.
    up: Atomic<bool>,
    /// True if a request has not completed within `limit`.
    late: Atomic<bool>,
    /// Number of tasks that are posting, or are about to check whether they may.
    posting: Atomic<u32>,
}

// SAFETY: `raw` is not tied to a task, nor is anything else.
unsafe impl Send for RegQp {}
// SAFETY: Requests may be posted to `raw` by several tasks at once; all else does its own locking.
unsafe impl Sync for RegQp {}

enum State {
    /// Connected; it may have gone into error since.
    Present(Qp<ReadyToSend>),
    /// Destroyed: nothing will be carried out or complete any more.
    Destroyed,
    /// It could not be destroyed. It has been leaked, with the completion queue.
    Stuck,
}

impl RegQp {
    /// Uses a connected queue pair for requests about regions. Each may take at most `limit` seconds
    /// (but at least one). May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the queue pair has no completion queue for sends.
    /// - `ENOMEM`
    pub fn new(qp: Qp<ReadyToSend>, limit: u32) -> Result<Arc<Self>> {
        let raw = NonNull::new(qp.as_raw()).ok_or(EINVAL)?;
        let cq = qp.send_cq().ok_or(EINVAL)?.clone();
        Arc::pin_init(
            // INVARIANT: `raw` is the queue pair of `state`.
            pin_init!(Self {
                pd: qp.pd().clone(),
                limit: limit.max(1),
                cq,
                sends: qp.raw.sends.clone(),
                state <- new_mutex!(State::Present(qp)),
                raw,
                up: Atomic::new(true),
                late: Atomic::new(false),
                posting: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Checks whether a work request has failed, or [`RegQp::fail`] has been called. Then no
    /// request succeeds here any more. Doesn't sleep.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.sends.broken().is_some()
    }

    /// Returns the reason why the queue pair is broken: a request that has timed out, a request
    /// that has failed, or else a flush. Doesn't sleep.
    pub fn broken_by(&self) -> Option<WrError> {
        let failure = self.sends.broken()?.to_result().err()?;
        Some(match self.late.load(Relaxed) {
            true => WrError::TimedOut,
            false => failure,
        })
    }

    /// Checks whether a protection domain is this queue pair's.
    fn is_same_pd(&self, pd: &Arc<Pd>) -> bool {
        Arc::ptr_eq(self.pd(), pd)
    }
}

#[pinned_drop]
impl PinnedDrop for RegQp {
    fn drop(self: Pin<&mut Self>) {
        self.destroy();
    }
}

impl RegQp {
    /// Takes a credit. Returns [`WrError::Flushed`] if the queue pair breaks meanwhile. If other
    /// tasks have all credits, sleeps, uninterruptibly, until one of them returns a credit.
    #[inline]
    fn credit(&self) -> Result<Credit<'_>, WrError> {
        match self.sends.credits().try_take() {
            Some(credit) => Ok(credit),
            None => self.await_credit(),
        }
    }

    /// Takes a credit as [`credit`](Self::credit) does, if there was none.
    #[cold]
    fn await_credit(&self) -> Result<Credit<'_>, WrError> {
        // All tasks that have a credit may be posting, and so wait for one, too.
        let _listening = self.cq.listen();
        loop {
            if self.is_broken() {
                return Err(WrError::Flushed);
            }
            if let Some(credit) = self.sends.credits().take() {
                return Ok(credit);
            }
        }
    }

    /// Calls `post` with the queue pair, which stays valid for the call. Returns [`None`] if the
    /// queue pair isn't up any more.
    fn while_up<T>(&self, post: impl FnOnce(*mut rdma_bindings::ib_qp) -> T) -> Option<T> {
        // Counted before it reads `up`: the task that clears `up` then waits for the counted ones.
        self.posting.fetch_add(1, Full);
        // By the type invariant `raw` is valid while a task is counted that found `up` set.
        let posted = self.up.load(Relaxed).then(|| post(self.raw.as_ptr()));
        self.posting.fetch_sub(1, Full);
        posted
    }

    /// Calls `post` with the queue pair and the `cqe` to post a request, and waits for its
    /// completion. After an error the device does not execute the request later, except after
    /// [`WrError::Lost`]. Sleeps, uninterruptibly, until there is a credit, and then for a few time
    /// limits at most.
    ///
    /// # Safety
    ///
    /// The memory of the request must stay until this has returned. If this returns
    /// [`WrError::Lost`], it must stay for good.
    #[inline]
    pub(super) unsafe fn run_one(
        &self,
        post: impl FnOnce(*mut rdma_bindings::ib_qp, *mut rdma_bindings::ib_cqe) -> Result,
    ) -> Result<(), WrError> {
        stack_pin_init!(let waiter = Waiter::new(&self.sends));
        let waiter = waiter.into_ref();

        let credit = self.credit()?;
        // SAFETY: The queue pair is valid in `while_up`, and its completion queue keeps `sends` as
        // long as requests may complete. The memory of the request is valid by the function's
        // contract: this returns only when the request has completed, or the queue pair is gone.
        // The waiter waits.
        self.while_up(|qp| unsafe { waiter.post(&credit, |cqe| post(qp, cqe)) })
            .unwrap_or(Err(WrError::Flushed))?;
        credit.keep();
        self.wait(waiter)?;
        waiter.result()
    }

    /// Posts requests of one kind, each about a region, and waits for their completions. It posts
    /// some at a time; the last of them is signaled. If one fails, the error is that they were
    /// flushed. Sleeps, uninterruptibly, for a few time limits at most once there are credits.
    ///
    /// After an error the device may have carried out some of them. It carries out no other one
    /// later, except after [`WrError::Lost`].
    pub(super) fn run_together<'a>(
        &self,
        mut requests: impl Iterator<Item = RegionWr<'a>>,
    ) -> Result<(), WrError> {
        stack_pin_init!(let waiter = Waiter::new(&self.sends));
        let waiter = waiter.into_ref();

        let mut posted = Ok(());
        while posted.is_ok() && waiter.status() == WcStatus::SUCCESS {
            let Some(first) = requests.next() else {
                break;
            };
            // SAFETY: The regions are borrowed for longer than this function, which returns only when all
            // requests have completed or the queue pair is gone; if it could not be destroyed, the callers leak
            // the regions, as `WrError::Lost` says. The waiter waits.
            posted = unsafe { self.post_together(waiter, first, &mut requests) };
        }
        match self.wait(waiter) {
            // A refusal of the driver may have caused the queue pair to be destroyed.
            Ok(()) => posted.and(waiter.result()),
            lost => lost,
        }
    }

    /// Posts a request and as many of those that follow as there are credits for, but not too many.
    /// Sleeps, uninterruptibly, until there is one.
    ///
    /// # Safety
    ///
    /// The requirements of [`Waiter::post`] for each request, except those for the queue pair.
    unsafe fn post_together<'a>(
        &self,
        waiter: Pin<&Waiter<'_>>,
        first: RegionWr<'a>,
        others: &mut impl Iterator<Item = RegionWr<'a>>,
    ) -> Result<(), WrError> {
        let credits = self.sends.credits();
        let credit = self.credit()?;
        let mut together = WrBatch::new(first);
        let more = credits.take_some(WrBatch::MORE);
        while together.count() <= more {
            let Some(other) = others.next() else {
                break;
            };
            together.push(other);
        }
        credits.give_back((more + 1).saturating_sub(together.count()));
        // SAFETY: The queue pair is valid in `while_up`, and its completion queue keeps `sends` as
        // long as requests may complete. The caller promises the rest.
        let posted = self.while_up(|qp| unsafe { waiter.post_together(qp, &credit, &together) });
        let error = match posted {
            Some(Ok(())) => {
                credit.keep();
                return Ok(());
            }
            // The completion of the posted requests gives the credits of all back.
            Some(Err(PostError::Rest(error))) => {
                credit.keep();
                return Err(WrError::Post(error));
            }
            Some(Err(PostError::RestUntold(error))) => {
                credit.keep();
                // Nothing tells how those end that were posted, but that there is no queue pair.
                self.fail();
                self.destroy();
                return Err(WrError::Post(error));
            }
            Some(Err(PostError::All(error))) => WrError::Post(error),
            None => WrError::Flushed,
        };
        credits.give_back(together.count() - 1);
        Err(error)
    }
}

impl RegQp {
    /// Registers any number of regions, with their next keys. When the device has registered all of
    /// them, passes each to `valid`, in order.
    ///
    /// Sleeps, uninterruptibly, until the device is done with all of them.
    ///
    /// # Errors
    ///
    /// After an error, no region is valid.
    ///
    /// - [`EINVAL`]: a region is of another protection domain.
    /// - [`WrError::Flushed`]: of several regions, the device refused one, or another task's
    ///   request failed.
    /// - The failure of the request, if there is one region.
    #[inline(always)]
    pub fn register_all<L: DmaList>(
        &self,
        mut mrs: impl DerefMut<Target = [PreparedMr<L>]> + IntoIterator<Item = PreparedMr<L>>,
        mut valid: impl FnMut(ValidMr),
    ) -> Result<(), RegisterError<L>> {
        mrs.iter_mut().for_each(PreparedMr::next_key);
        if let Err(error) = self.make_valid(&mrs) {
            let count = mrs.len();
            return Err(undo(mrs, count, error));
        }
        for mr in mrs {
            // SAFETY: The device has just registered all of them.
            valid(unsafe { mr.into_valid() });
        }
        Ok(())
    }

    /// Registers regions by the keys that they have. After an error nothing is known of any of them.
    fn make_valid<L: DmaList>(&self, mrs: &[PreparedMr<L>]) -> Result<(), WrError> {
        if !mrs.iter().all(|mr| self.is_same_pd(mr.pd())) {
            return Err(WrError::Post(EINVAL));
        }
        match mrs {
            [one] => {
                let (mr, access) = (one.as_raw(), one.access().into());
                // SAFETY: `qp` and `cqe` are valid until the request has completed. The region is
                // borrowed for longer than the call. If the request is lost, `undo()` leaks the
                // region.
                unsafe {
                    self.run_one(|qp, cqe| to_result(b::rdma_helper_post_reg(qp, mr, access, cqe)))
                }
            }
            _ => self.run_together(mrs.iter().map(RegionWr::register)),
        }
    }

    /// Takes regions from the device: when this has succeeded, no peer can reach their memory.
    ///
    /// Sleeps, uninterruptibly, until that is so. Regions that could be invalidated go to `reuse`.
    /// The others are deregistered. So are all regions if the fence or the queue pair is not for
    /// their device. An error means that the device would not release all of them. Those have been
    /// leaked with their mapping, and their memory must never be freed.
    #[inline(always)]
    pub fn revoke_all(
        &self,
        mrs: impl Deref<Target = [ValidMr]> + IntoIterator<Item = ValidMr>,
        fence: Fence,
        mut reuse: impl FnMut(FastMr),
    ) -> Result {
        if self.invalidate(&mrs, fence).is_err() {
            return deregister_all(mrs);
        }
        for mr in mrs {
            // SAFETY: The device has just invalidated it, which is a fence here, as `Fence` says.
            reuse(unsafe { mr.into_free() });
        }
        Ok(())
    }

    /// Gives valid regions other memory, behind the same keys, at the same addresses and with the
    /// same rights. `lists` must have one list for each region, of the same length and the same
    /// offset in its page. The fence must be an invalidation.
    ///
    /// After success no peer can reach the old memory any more. During the call no peer can reach
    /// any memory of the regions. After most errors, that remains so, and `mrs` is empty:
    /// [`RefreshError`] says when. Sleeps, uninterruptibly, until the device is done.
    pub fn refresh_all<L: DmaList>(
        &self,
        mrs: &mut SmallVec<ValidMr>,
        lists: SmallVec<L>,
        fence: Fence,
    ) -> Result<(), RefreshError> {
        if mrs.len() != lists.len() || !self.can_invalidate(mrs, fence) {
            return Err(RefreshError::Untouched(EINVAL));
        }
        let mut prepared = SmallVec::with_capacity(mrs.len(), GFP_KERNEL)
            .map_err(|e| RefreshError::Untouched(e.into()))?;
        let mut room = SmallVec::with_capacity(mrs.len(), GFP_KERNEL)
            .map_err(|e| RefreshError::Untouched(e.into()))?;

        let old = core::mem::take(mrs);
        if self.invalidate(&old, fence).is_err() {
            return Err(match deregister_all(old) {
                Ok(()) => RefreshError::Gone,
                Err(_) => RefreshError::Leaked,
            });
        }
        for (mr, list) in old.into_iter().zip(lists) {
            // SAFETY: The device has just invalidated it, which is a fence here, as `Fence` says.
            let mr = unsafe { mr.remap(list) };
            // On an error all are dropped, and so deregistered; the device has none of them now.
            prepared.push_reserved(mr.map_err(|_| RefreshError::Gone)?);
        }
        if let Err(error) = self.make_valid(&prepared) {
            let count = prepared.len();
            return Err(match undo(prepared, count, error).lists {
                Err(e) if e == EIO => RefreshError::Leaked,
                _ => RefreshError::Gone,
            });
        }
        // SAFETY: The device has just registered all of them.
        prepared.consume(|mr| room.push_reserved(unsafe { mr.into_valid() }));
        *mrs = room;
        Ok(())
    }

    /// Checks whether invalidating on this queue pair is a fence for regions.
    fn can_invalidate(&self, mrs: &[ValidMr], fence: Fence) -> bool {
        fence.invalidates_on(&self.pd().device) && mrs.iter().all(|mr| self.is_same_pd(mr.pd()))
    }

    /// Invalidates the region with this key, and waits. Sleeps, uninterruptibly.
    pub(super) fn invalidate_key(&self, key: u32) -> Result<(), WrError> {
        // SAFETY: `qp` and `cqe` are valid until the request has completed. The request refers to no
        // memory: it names a key.
        unsafe { self.run_one(|qp, cqe| to_result(b::rdma_helper_post_inv(qp, key, cqe))) }
    }

    /// Invalidates regions, if that is a fence. After an error nothing is known of any of them.
    fn invalidate(&self, mrs: &[ValidMr], fence: Fence) -> Result<(), WrError> {
        if !self.can_invalidate(mrs, fence) {
            return Err(WrError::Post(EINVAL));
        }
        match mrs {
            [one] => self.invalidate_key(one.rkey()),
            _ => self.run_together(mrs.iter().map(RegionWr::invalidate)),
        }
    }
}

/// Deregisters `count` regions that the device may have registered or not, and returns their lists.
#[cold]
fn undo<L: DmaList>(
    mrs: impl IntoIterator<Item = PreparedMr<L>>,
    count: usize,
    error: WrError,
) -> RegisterError<L> {
    let mut lists = SmallVec::with_capacity(count, GFP_KERNEL).map_err(Error::from);
    let mut leaked = false;
    for mr in mrs {
        let list = match error {
            // The device may register the region later, so it must stay.
            WrError::Lost => {
                mr.leak();
                None
            }
            _ => mr.abandon(),
        };
        match (list, &mut lists) {
            (Some(list), Ok(lists)) => lists.push_reserved(list),
            (Some(_), Err(_)) => (),
            (None, _) => leaked = true,
        }
    }
    // A leak of memory matters more than the reason why the lists can't be returned.
    let lists = if leaked { Err(EIO) } else { lists };
    RegisterError { error, lists }
}
