// SPDX-License-Identifier: GPL-2.0

//! Outstanding work requests of a queue, the owners that get their completions, and the credits that limit
//! their number.
//!
//! A completion refers to the `cqe` in a [`Slot`], not in the owner. The slots exist as long as
//! completions may arrive. So a late completion, or one whose owner has given up, finds a valid
//! slot.

mod slot;

pub(crate) use self::slot::{
    End,
    Owner,
    Slot, //
};

use self::slot::Standing;
use crate::{
    credits::{
        Credit,
        Credits, //
    },
    prelude::*, //
};
use core::hint::spin_loop;

/// The work requests of one queue.
///
/// # Invariants
///
/// The owner in a slot is valid until it has been notified, or has removed itself from the slot.
#[pin_data(PinnedDrop)]
pub(crate) struct Outstanding {
    #[pin]
    standing: Standing,
    /// One for each credit, and then one for the request that drains the queue, which has no credit.
    slots: KVec<Slot>,
    /// Where to look for a free slot of a credit.
    next: Atomic<usize>,
    /// Where requests complete to that tell of errors only.
    pub(crate) quiet: Opaque<rdma_bindings::ib_cqe>,
}

// SAFETY: Nothing of a queue is tied to a task: `quiet` is constant.
unsafe impl Send for Outstanding {}

// SAFETY: `quiet` is constant; the others may be shared.
unsafe impl Sync for Outstanding {}

impl Outstanding {
    /// Creates a queue with slots for `depth` requests and for one that drains the queue. May
    /// sleep.
    pub(crate) fn new(depth: u32) -> Result<Arc<Self>> {
        Self::make(depth, false)
    }

    /// Creates a queue like [`new`](Self::new). If the queue has `shared` receives, a failure
    /// breaks only the queue pair of the failed request. May sleep.
    pub(crate) fn make(depth: u32, shared: bool) -> Result<Arc<Self>> {
        let count = usize::try_from(depth)?.checked_add(1).ok_or(EOVERFLOW)?;
        Arc::pin_init(
            try_pin_init!(&this in Self {
                standing <- Standing::new(depth, shared),
                // SAFETY: `this` is where this is going to be.
                slots: Slot::several(count, unsafe {
                    NonNull::new_unchecked(&raw mut (*this.as_ptr()).standing)
                })?,
                next: Atomic::new(0),
                quiet: Opaque::new(rdma_bindings::ib_cqe {
                    done: Some(Self::failed),
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the credits: one for each request in flight.
    pub(crate) fn credits(&self) -> &Credits {
        &self.standing.credits
    }

    /// Returns the maximum number of requests in flight.
    pub(crate) fn depth(&self) -> usize {
        self.slots.len().saturating_sub(1)
    }

    /// Returns the number of requests in flight that will complete, and the number of completions.
    /// Both are estimates while other tasks post or requests complete. Any context.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let depth = self.depth();
        let under_way = depth.saturating_sub(self.standing.credits.left());
        let begun = self.next.load(Relaxed);
        let waited_for = under_way.saturating_sub(self.standing.silent.load(Relaxed));
        (waited_for, begun.wrapping_sub(under_way))
    }

    /// Checks whether all requests have completed and no task is about to post. Any context.
    pub(crate) fn is_idle(&self) -> bool {
        let free = self.slots.iter().all(Slot::is_free);
        free && self.standing.credits.left() >= self.depth()
    }

    /// Returns the status that broke the queue, if any. Any context.
    #[inline]
    pub(crate) fn broken(&self) -> Option<WcStatus> {
        // Pairs with the release in `break_by`: the caller may then read why the queue is broken.
        let status = WcStatus::from_raw(self.standing.broken.load(Acquire));
        (status != WcStatus::SUCCESS).then_some(status)
    }

    /// Marks the queue as broken, and keeps the first status. Any context.
    pub(crate) fn break_by(&self, status: WcStatus) {
        self.standing.break_by(status);
    }

    /// Takes a credit and a slot for a request, whose completion notifies `owner` and returns the credit.
    /// The caller posts the request with the `cqe` of the slot. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the queue is broken.
    /// - `EAGAIN`: the queue is full.
    /// - `EBUSY`: the queue has no slots.
    ///
    /// # Safety
    ///
    /// `owner` must be valid until it has been notified, or until [`put_back`](Self::put_back) or
    /// [`forget`](Self::forget) has removed it.
    #[inline]
    pub(crate) unsafe fn take_slot(&self, owner: NonNull<Owner>) -> Result<&Slot> {
        if self.broken().is_some() {
            return Err(errno(bindings::ENOTCONN));
        }
        let credit = self.standing.credits.try_take().ok_or(EAGAIN)?;
        // SAFETY: `owner` is valid by the function's contract.
        let slot = unsafe { self.claim(&credit, owner, 1) }.ok_or(EBUSY)?;
        credit.keep();
        Ok(slot)
    }

    /// Returns the slot and the credit of a request that was not posted. Any context.
    ///
    /// # Safety
    ///
    /// `slot` must come from [`take_slot`](Self::take_slot) of `self`. Its request must not have been posted.
    pub(crate) unsafe fn put_back(&self, slot: &Slot) {
        // SAFETY: The request was not posted, by the function's contract.
        unsafe { slot.free() };
        self.standing.credits.give_back(1);
    }

    /// Claims the slot for the request that drains the queue, if the slot is free: not while the device has the
    /// request of an earlier drain. That request needs no credit. Any context.
    ///
    /// # Safety
    ///
    /// `owner` must be valid as for [`claim`](Self::claim).
    pub(crate) unsafe fn claim_last(&self, owner: NonNull<Owner>) -> Option<&Slot> {
        self.slots.last().filter(|slot| slot.take(owner, 0))
    }

    /// Handles the completion of a request that reports errors only. Any context.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of a request that was posted with the `quiet` of a valid queue.
    unsafe extern "C" fn failed(_cq: *mut rdma_bindings::ib_cq, wc: *mut rdma_bindings::ib_wc) {
        // SAFETY: `wc` is valid for the call by the function's contract.
        let wc = unsafe { &*wc };
        // SAFETY: `wr_cqe` is the member that kernel users set.
        let cqe = *unsafe { wc.__bindgen_anon_1.wr_cqe.as_ref() };
        let cqe = cqe.cast::<Opaque<rdma_bindings::ib_cqe>>();
        // SAFETY: `cqe` is the member `quiet` of a valid queue by the function's contract.
        let this = unsafe { &*container_of!(cqe, Self, quiet) };
        let status = WcStatus::from_raw(wc.status);
        if status != WcStatus::SUCCESS {
            this.break_by(status);
        }
    }

    /// Tells the owner of a slot that its request has not been posted. Any context.
    ///
    /// # Safety
    ///
    /// `cqe` must be of a slot of a valid queue. Its request must not have been posted.
    pub(crate) unsafe fn refuse(cqe: *mut rdma_bindings::ib_cqe, error: Error) {
        // SAFETY: `cqe` is the member of a slot of a valid queue by the function's contract.
        unsafe { Slot::of_cqe(cqe) }.tell(End::Refused(error));
    }

    /// Makes the request with this `cqe` unsignaled: it completes only if it fails. Its owner is
    /// notified with a later request. Must be called before the request is posted or followed. Any
    /// context.
    ///
    /// # Safety
    ///
    /// `cqe` must be of a slot of a valid queue. Its owner must not have been notified.
    pub(crate) unsafe fn silence(cqe: *mut rdma_bindings::ib_cqe) {
        // SAFETY: `cqe` is the member of a slot of a valid queue by the function's contract.
        unsafe { Slot::of_cqe(cqe) }.silence();
    }

    /// Lets the request of `cqe` complete the unsignaled request of `before` and all those that
    /// precede it. Any context.
    ///
    /// # Safety
    ///
    /// - Both must be of slots of one valid queue. Neither owner must have been notified.
    /// - The one with `cqe` is posted behind the other, which is silent, and ends with no third one.
    pub(crate) unsafe fn follow(
        cqe: *mut rdma_bindings::ib_cqe,
        before: *mut rdma_bindings::ib_cqe,
    ) {
        // SAFETY: `cqe` and `before` are members of slots of a valid queue by the function's
        // contract.
        let (slot, before) = unsafe { (Slot::of_cqe(cqe), Slot::of_cqe(before)) };
        // INVARIANT: `before` is unsignaled and of the same queue by the function's contract.
        slot.follow(before);
    }

    /// Completes all unsignaled requests. No later completion would: all other requests have
    /// completed. Any context.
    pub(crate) fn end_silent(&self) {
        for slot in &self.slots {
            if let Some(end) = slot.ended_silently() {
                slot.tell(end);
            }
        }
    }

    /// Claims a free slot for the last of `requests` requests. Its completion notifies `owner`.
    /// Each request has a credit; `_credit` is one of these. The caller must keep the credit of a
    /// posted request. Returns `None` if the queue has no slots. Any context.
    ///
    /// # Safety
    ///
    /// `owner` must stay valid until one of these:
    ///
    /// - The completion has notified it.
    /// - [`forget`](Self::forget) has removed it.
    /// - The request was not posted, and its slot [is free](Slot::free).
    #[inline]
    pub(crate) unsafe fn claim(
        &self,
        _credit: &Credit<'_>,
        owner: NonNull<Owner>,
        requests: u32,
    ) -> Option<&Slot> {
        let first = self.next.fetch_add(1, Relaxed).checked_rem(self.depth())?;
        match self.slots.get(first) {
            // As it mostly is: requests end in the order in which they began.
            Some(slot) if slot.take(owner, requests) => Some(slot),
            _ => self.claim_any(first, |slot| slot.take(owner, requests)),
        }
    }

    /// Takes the first free slot of a credit, by `take`, from this one on.
    ///
    /// A slot can become free right after this call found it in use, and another request can claim
    /// an earlier free slot. So this call can find all slots in use although one is free at any
    /// time. It then tries all of them again. Each repetition means that another request has got a
    /// slot.
    #[cold]
    fn claim_any(&self, first: usize, mut take: impl FnMut(&Slot) -> bool) -> Option<&Slot> {
        let slots = self.slots.get(..self.depth())?;
        let (front, back) = slots.split_at_checked(first)?;
        loop {
            for slots in [back, front] {
                if let Some(slot) = slots.iter().find(|slot| take(slot)) {
                    return Some(slot);
                }
            }
            spin_loop();
        }
    }

    /// Takes an owner out of all slots, and returns how many there were. It is not told of those
    /// requests; callbacks that have its name already tell it. The slots and credits stay in use until the
    /// requests have ended. Any context.
    pub(crate) fn forget(&self, owner: NonNull<Owner>) -> u32 {
        let mut forgotten = 0;
        for slot in &self.slots {
            forgotten += u32::from(slot.forget(owner));
        }
        forgotten
    }

    /// Tells all owners that are left that their requests have ended like this. Any context.
    pub(crate) fn end_all(&self, end: End<'_>) {
        self.slots.iter().for_each(|slot| slot.tell(end));
    }
}

#[pinned_drop]
impl PinnedDrop for Outstanding {
    fn drop(self: Pin<&mut Self>) {
        // Nothing completes any more. After a queue pair that was destroyed there is none.
        self.end_all(End::Lost);
    }
}
