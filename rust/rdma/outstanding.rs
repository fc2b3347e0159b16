// SPDX-License-Identifier: GPL-2.0

//! The work requests of a queue that are under way, and who is told how each of them ends.
//!
//! What the device's completion leads to, a `cqe`, lies in a [`Slot`] and not with who waits: the
//! slots stay as long as completions may come, so one that comes late, or after its owner has
//! given up, finds nothing that is gone.

mod slot;

pub(crate) use self::slot::{
    End,
    Owner, //
};

use self::slot::{
    Slot,
    Standing, //
};

use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    types::Opaque, //
};

use core::{
    hint::spin_loop,
    ptr::NonNull, //
};

use crate::{
    credits::{
        Credit,
        Credits, //
    },
    raw_wr::Post,
    together::{
        PostError,
        Together, //
    },
    wc::WcStatus, //
};

/// The work requests of one queue.
///
/// # Invariants
///
/// Whoever a slot names is there until it has been told, or has taken its name out.
#[pin_data(PinnedDrop)]
pub(crate) struct Outstanding {
    #[pin]
    standing: Standing,
    /// One for each credit, and then one for the request that drains the queue, which has no credit.
    slots: KVec<Slot>,
    /// Where to look for a free slot of a credit.
    next: Atomic<usize>,
    /// Where requests complete to that tell of errors only.
    quiet: Opaque<rdma_bindings::ib_cqe>,
}

// SAFETY: Nothing of a queue is tied to a task: `quiet` is constant.
unsafe impl Send for Outstanding {}

// SAFETY: `quiet` is constant; the others may be shared.
unsafe impl Sync for Outstanding {}

impl Outstanding {
    /// Slots for `depth` requests and one that drains the queue. May sleep.
    pub(crate) fn new(depth: u32) -> Result<Arc<Self>> {
        Self::make(depth, false)
    }

    /// As [`new`](Self::new), for receives that queue pairs share: a failure breaks that queue pair only.
    pub(crate) fn shared(depth: u32) -> Result<Arc<Self>> {
        Self::make(depth, true)
    }

    fn make(depth: u32, shared: bool) -> Result<Arc<Self>> {
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

    /// One for each request that may be under way.
    pub(crate) fn credits(&self) -> &Credits {
        &self.standing.credits
    }

    /// How many requests may be under way.
    pub(crate) fn depth(&self) -> usize {
        self.slots.len().saturating_sub(1)
    }

    /// How many requests are under way of which there will be a completion, and how many have ended; each
    /// may be off by those that begin or end just now. Any context.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let depth = self.depth();
        let under_way = depth.saturating_sub(self.standing.credits.left());
        let begun = self.next.load(Relaxed);
        let waited_for = under_way.saturating_sub(self.standing.silent.load(Relaxed));
        (waited_for, begun.wrapping_sub(under_way))
    }

    /// Whether all requests have ended, and nobody is about to post one. Any context.
    pub(crate) fn is_idle(&self) -> bool {
        let free = self.slots.iter().all(Slot::is_free);
        free && self.standing.credits.left() >= self.depth()
    }

    /// What broke the queue, if anything has. Any context.
    #[inline]
    pub(crate) fn broken(&self) -> Option<WcStatus> {
        self.standing.broken()
    }

    /// The queue is broken. The first failure that is told is kept. Any context.
    pub(crate) fn break_by(&self, status: WcStatus) {
        self.standing.break_by(status);
    }

    /// Posts a request, of which `owner` is told. The credit is the request's, if it is posted. An error
    /// means that it was not posted, and that nobody is told. Any context.
    ///
    /// # Safety
    ///
    /// - `qp` must be there, and not be destroyed before the request is posted; its completions
    ///   must end before this goes.
    /// - What the request refers to must stay until the owner has been told.
    /// - `owner` must stay until then, or until [`Outstanding::forget`] has taken it out.
    pub(crate) unsafe fn post(
        &self,
        qp: *mut rdma_bindings::ib_qp,
        credit: &Credit<'_>,
        owner: NonNull<Owner>,
        request: impl Post,
    ) -> Result {
        let slot = self.claim(credit, owner, 1).ok_or(EBUSY)?;
        // SAFETY: `qp` and what the request refers to are there as this function demands; the
        // slot's `cqe` is this queue's, which goes after its completions.
        unsafe { request.post(qp, slot.cqe()) }.inspect_err(|_| slot.free())
    }

    /// As [`post`](Self::post), for the request that drains the queue, which needs no credit. `EBUSY` if
    /// there is one already.
    ///
    /// # Safety
    ///
    /// Those of [`post`](Self::post).
    pub(crate) unsafe fn post_last(
        &self,
        qp: *mut rdma_bindings::ib_qp,
        owner: NonNull<Owner>,
        request: impl Post,
    ) -> Result {
        let last = self.slots.last().filter(|slot| slot.take(owner, 0));
        let slot = last.ok_or(EBUSY)?;
        // SAFETY: `qp` and what the request refers to are there as this function demands; the
        // slot's `cqe` is this queue's, which goes after its completions.
        unsafe { request.post(qp, slot.cqe()) }.inspect_err(|_| slot.free())
    }

    /// Posts requests about regions with one word to the device; the last one's end is that of all, and
    /// of that `owner` is told. The requests have one credit each, of which `credit` is one. If the driver
    /// refuses all of them, nobody is told. Any context.
    ///
    /// # Safety
    ///
    /// Those of [`Outstanding::post`], for each.
    pub(crate) unsafe fn post_together(
        &self,
        qp: *mut rdma_bindings::ib_qp,
        credit: &Credit<'_>,
        owner: NonNull<Owner>,
        requests: &Together<'_>,
    ) -> Result<(), PostError> {
        let claimed = self.claim(credit, owner, requests.count());
        let slot = claimed.ok_or(PostError::All(EBUSY))?;
        // SAFETY: `qp` and what the requests refer to are there as this function demands; both `cqe`s
        // are this queue's, which goes after its completions.
        unsafe { requests.post(qp, self.quiet.get(), slot.cqe()) }.inspect_err(|refused| {
            if let PostError::All(_) = refused {
                slot.free();
            }
        })
    }

    /// The completion callback of a request that tells of errors only, in any context.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of a request posted with the `quiet` of a queue that is there.
    unsafe extern "C" fn failed(_cq: *mut rdma_bindings::ib_cq, wc: *mut rdma_bindings::ib_wc) {
        // SAFETY: The caller vouches for `wc`, which is there until this returns.
        let wc = unsafe { &*wc };
        // SAFETY: This is the member that kernel users set.
        let cqe = *unsafe { wc.__bindgen_anon_1.wr_cqe.as_ref() };
        let cqe = cqe.cast::<Opaque<rdma_bindings::ib_cqe>>();
        // SAFETY: It is the member of a queue, which is there as the caller vouches.
        let this = unsafe { &*container_of!(cqe, Self, quiet) };
        let status = WcStatus::from_raw(wc.status);
        if status != WcStatus::SUCCESS {
            this.break_by(status);
        }
    }

    /// Takes a slot for a request with a credit that is posted later, or
    /// [refused](Outstanding::refuse), and returns its `cqe`. Any context.
    ///
    /// # Safety
    ///
    /// `owner` must stay until it has been told.
    pub(crate) unsafe fn reserve(
        &self,
        credit: &Credit<'_>,
        owner: NonNull<Owner>,
    ) -> Option<*mut rdma_bindings::ib_cqe> {
        self.claim(credit, owner, 1).map(|slot| slot.cqe())
    }

    /// Gives a slot back, whose owner is not told. Any context.
    ///
    /// # Safety
    ///
    /// `cqe` must have come from [`Outstanding::reserve`] of a queue that is there, and nothing be posted
    /// with it.
    pub(crate) unsafe fn unreserve(cqe: *mut rdma_bindings::ib_cqe) {
        // SAFETY: By the requirements of this function.
        unsafe { Slot::of_cqe(cqe) }.free();
    }

    /// Tells the owner of a slot that its request has not been posted. Any context.
    ///
    /// # Safety
    ///
    /// `cqe` must have come from [`Outstanding::reserve`] of a queue that is there.
    pub(crate) unsafe fn refuse(cqe: *mut rdma_bindings::ib_cqe, error: Error) {
        // SAFETY: By the requirements of this function.
        unsafe { Slot::of_cqe(cqe) }.tell(End::Refused(error));
    }

    /// The request with this `cqe` completes only if it fails: its owner is told with that of a request
    /// behind it. To be called before it is posted, and before it has a slot behind it. Any context.
    ///
    /// # Safety
    ///
    /// `cqe` must have come from [`Outstanding::reserve`] of a queue that is there, and its owner not
    /// have been told.
    pub(crate) unsafe fn silence(cqe: *mut rdma_bindings::ib_cqe) {
        // SAFETY: By the requirements of this function.
        unsafe { Slot::of_cqe(cqe) }.silence();
    }

    /// With the request that has `cqe` ends the silent one that has `before`, and those that end with
    /// that. Any context.
    ///
    /// # Safety
    ///
    /// - Both must have come from [`Outstanding::reserve`] of one queue, which is there; neither owner
    ///   have been told.
    /// - The one with `cqe` is posted behind the other, which is silent, and ends with no third one.
    pub(crate) unsafe fn follow(
        cqe: *mut rdma_bindings::ib_cqe,
        before: *mut rdma_bindings::ib_cqe,
    ) {
        // SAFETY: By the requirements of this function.
        let (slot, before) = unsafe { (Slot::of_cqe(cqe), Slot::of_cqe(before)) };
        // INVARIANT: Of the same queue, and silent, by the requirements of this function.
        slot.follow(before);
    }

    /// Ends all silent requests, which nothing will complete any more: everything before them has. Any
    /// context.
    pub(crate) fn end_silent(&self) {
        for slot in &self.slots {
            if let Some(end) = slot.ended_silently() {
                slot.tell(end);
            }
        }
    }

    /// Takes a free slot for the last of so many requests, of which each has a credit. There is one: each
    /// slot that is taken has a credit of its own, and `credit` has none yet. [`None`] only of a queue
    /// without credits.
    #[inline]
    fn claim(&self, _credit: &Credit<'_>, owner: NonNull<Owner>, requests: u32) -> Option<&Slot> {
        let first = self.next.fetch_add(1, Relaxed).checked_rem(self.depth())?;
        match self.slots.get(first) {
            // As it mostly is: requests end in the order in which they began.
            Some(slot) if slot.take(owner, requests) => Some(slot),
            _ => self.claim_any(first, |slot| slot.take(owner, requests)),
        }
    }

    /// Takes the first free slot of a credit, by `take`, from this one on.
    ///
    /// A slot can become free right after this has found it taken, and another request can take the slot that was
    /// free before this gets there. So this can find all taken although one is free at any time. It then looks
    /// at all again. Each repetition means that another request has got a slot meanwhile.
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
    /// requests; callbacks that have its name already tell it. Any context.
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
