// SPDX-License-Identifier: GPL-2.0

//! The work requests of a queue that are under way, and who is told how each of them ends.
//!
//! What the device's completion leads to, a `cqe`, lies in a [`Slot`] and not with who waits: the
//! slots stay as long as completions may come, so one that comes late, or after its owner has
//! given up, finds nothing that is gone.

mod owner;

pub(crate) use self::owner::{
    End,
    Owner, //
};

use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    },
    types::Opaque, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

use crate::{
    credits::Credits,
    raw_wr::RawWr,
    together::Together,
    wc::{
        Completion,
        WcStatus, //
    }, //
};

/// The work requests of one queue.
///
/// # Invariants
///
/// Whoever a slot names is there until it has been told, or has taken its name out.
#[pin_data(PinnedDrop)]
pub(crate) struct Outstanding {
    /// One for each request that may be under way, but for the one that drains the queue.
    #[pin]
    credits: Credits,
    /// One for each credit, and one for draining.
    slots: KVec<Slot>,
    /// Where to look for a free slot.
    next: Atomic<usize>,
    /// What broke the queue; [`WcStatus::SUCCESS`] while nothing has.
    broken: Atomic<u32>,
    /// Where requests complete to that tell of errors only.
    quiet: Opaque<rdma_bindings::ib_cqe>,
}

// SAFETY: Nothing of a queue is tied to a task: `quiet` is constant.
unsafe impl Send for Outstanding {}

// SAFETY: `quiet` is constant; the others may be shared.
unsafe impl Sync for Outstanding {}

/// A place for a request.
///
/// # Invariants
///
/// `of` is the queue that has the slot.
struct Slot {
    cqe: Opaque<rdma_bindings::ib_cqe>,
    /// Who is told of the request that has this place; null if it is free.
    owner: Atomic<*mut Owner>,
    /// How many requests before it, which have no slot, have ended when it has.
    others: Atomic<u32>,
    of: NonNull<Outstanding>,
}

// SAFETY: Nothing in a slot is tied to a task: `cqe` is constant, and `owner` and `of` are there as
// long as they are named.
unsafe impl Send for Slot {}

// SAFETY: `cqe` and `of` are constant, and `owner` is atomic.
unsafe impl Sync for Slot {}

impl Outstanding {
    /// Slots for `depth` requests and one that drains the queue. May sleep.
    pub(crate) fn new(depth: u32) -> Result<Arc<Self>> {
        let count = usize::try_from(depth)?.checked_add(1).ok_or(EOVERFLOW)?;
        Arc::pin_init(
            try_pin_init!(&this in Self {
                credits <- Credits::new(depth),
                slots: Slot::several(count, this)?,
                next: Atomic::new(0),
                broken: Atomic::new(WcStatus::SUCCESS.as_raw()),
                quiet: Opaque::new(rdma_bindings::ib_cqe {
                    done: Some(Self::failed),
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// One for each request that may be under way.
    pub(crate) fn credits(&self) -> &Credits {
        &self.credits
    }

    /// How many requests are under way, and how many have ended; each may be off by those that begin or
    /// end just now. Any context.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let depth = self.slots.len().saturating_sub(1);
        let under_way = depth.saturating_sub(self.credits.left());
        let begun = self.next.load(Relaxed);
        (under_way, begun.wrapping_sub(under_way))
    }

    /// What broke the queue, if anything has. Any context.
    pub(crate) fn broken(&self) -> Option<WcStatus> {
        let status = WcStatus::from_raw(self.broken.load(Relaxed));
        (status != WcStatus::SUCCESS).then_some(status)
    }

    /// The queue is broken. The first failure that is told is kept. Any context.
    pub(crate) fn break_by(&self, status: WcStatus) {
        let first = WcStatus::from_raw(self.broken.load(Relaxed)).and(status);
        self.broken.store(first.as_raw(), Relaxed);
    }

    /// Posts a request, of which `owner` is told. An error means that it was not posted, and that
    /// nobody is told. Any context.
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
        owner: NonNull<Owner>,
        request: RawWr,
    ) -> Result {
        // There are as many slots as credits.
        let slot = self.claim(owner, 0).ok_or(EBUSY)?;
        // SAFETY: `qp` and what the request refers to are there as this function demands; the
        // slot's `cqe` is this queue's, which goes after its completions.
        unsafe { request.post(qp, slot.cqe.get()) }
            .inspect_err(|_| slot.owner.store(null_mut(), Relaxed))
    }

    /// Posts requests about regions with one word to the device; the last one's end is that of all, and
    /// of that `owner` is told. An error says how many were posted: if that is none, nobody is told. If
    /// it is some, their end is told only when their queue pair has ended. Any context.
    ///
    /// # Safety
    ///
    /// Those of [`Outstanding::post`], for each.
    pub(crate) unsafe fn post_together(
        &self,
        qp: *mut rdma_bindings::ib_qp,
        owner: NonNull<Owner>,
        requests: &Together,
    ) -> Result<(), (Error, u32)> {
        let others = requests.count().saturating_sub(1);
        let slot = self.claim(owner, others).ok_or((EBUSY, 0))?;
        // SAFETY: `qp` and what the requests refer to are there as this function demands; both `cqe`s
        // are this queue's, which goes after its completions.
        unsafe { requests.post(qp, self.quiet.get(), slot.cqe.get()) }.inspect_err(|(_, posted)| {
            if *posted == 0 {
                slot.owner.store(null_mut(), Relaxed);
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
        let status = Completion::read(wc).status;
        if status != WcStatus::SUCCESS {
            this.break_by(status);
        }
    }

    /// Takes a slot for a request that is posted later, or [refused](Outstanding::refuse), and
    /// returns its `cqe`. Any context.
    ///
    /// # Safety
    ///
    /// `owner` must stay until it has been told.
    pub(crate) unsafe fn reserve(
        &self,
        owner: NonNull<Owner>,
    ) -> Option<*mut rdma_bindings::ib_cqe> {
        // There are as many slots as credits.
        self.claim(owner, 0).map(|slot| slot.cqe.get())
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

    /// Takes a free slot, for a request and so many others before it.
    fn claim(&self, owner: NonNull<Owner>, others: u32) -> Option<&Slot> {
        let first = self.next.fetch_add(1, Relaxed) % self.slots.len().max(1);
        let (front, back) = self.slots.split_at_checked(first)?;
        let take = |slot: &&Slot| {
            let taken = slot.owner.cmpxchg(null_mut(), owner.as_ptr(), Full);
            taken.is_ok()
        };
        let slot = back.iter().find(take).or_else(|| front.iter().find(take))?;
        slot.others.store(others, Relaxed);
        Some(slot)
    }

    /// Takes an owner out of all slots, and returns how many there were. It is not told of those
    /// requests; callbacks that have its name already tell it. Any context.
    pub(crate) fn forget(&self, owner: NonNull<Owner>) -> u32 {
        let mut forgotten = 0;
        for slot in &self.slots {
            let owner = owner.as_ptr();
            forgotten += u32::from(slot.owner.cmpxchg(owner, null_mut(), Full).is_ok());
        }
        forgotten
    }

    /// Tells all owners that are left that their requests have ended like this. Any context.
    pub(crate) fn end_all(&self, end: End) {
        self.slots.iter().for_each(|slot| slot.tell(end));
    }
}

impl Slot {
    /// Free slots of a queue.
    fn several(count: usize, of: NonNull<Outstanding>) -> Result<KVec<Self>> {
        let mut slots = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            // INVARIANT: `of` is the queue that these are made for.
            let slot = Self {
                cqe: Opaque::new(rdma_bindings::ib_cqe {
                    done: Some(Self::complete),
                }),
                owner: Atomic::new(null_mut()),
                others: Atomic::new(0),
                of,
            };
            slots.push(slot, GFP_KERNEL)?;
        }
        Ok(slots)
    }

    /// The completion callback, in softirq context or in a task that looks for completions.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of a request posted with the `cqe` of a slot that is there.
    unsafe extern "C" fn complete(_cq: *mut rdma_bindings::ib_cq, wc: *mut rdma_bindings::ib_wc) {
        // SAFETY: The caller vouches for `wc`, which is there until this returns.
        let wc = unsafe { &*wc };
        // SAFETY: This is the member that kernel users set.
        let cqe = *unsafe { wc.__bindgen_anon_1.wr_cqe.as_ref() };
        // SAFETY: It is the member of a slot, which is there as the caller vouches.
        let slot = unsafe { Self::of_cqe(cqe) };
        slot.tell(End::Completed(Completion::read(wc)));
    }

    /// The slot of a `cqe`.
    ///
    /// # Safety
    ///
    /// `cqe` must be the member of a slot that is there for `'a`.
    unsafe fn of_cqe<'a>(cqe: *mut rdma_bindings::ib_cqe) -> &'a Self {
        let cqe = cqe.cast::<Opaque<rdma_bindings::ib_cqe>>();
        // SAFETY: By the requirements of this function.
        unsafe { &*container_of!(cqe, Self, cqe) }
    }

    /// Tells the owner, unless it has given up. Afterwards nothing of the queue is touched.
    fn tell(&self, end: End) {
        // Before the slot can be taken by somebody else.
        let others = self.others.load(Relaxed);
        let Some(owner) = NonNull::new(self.owner.xchg(null_mut(), Full)) else {
            return;
        };
        // SAFETY: By the type invariant `of` has this slot, so it is there.
        let of = unsafe { self.of.as_ref() };
        match end {
            End::Completed(completion) if completion.status == WcStatus::SUCCESS => (),
            End::Completed(completion) => of.break_by(completion.status),
            End::Refused(_) => (),
            End::Gone | End::Lost => of.break_by(WcStatus::FLUSHED),
        }
        // Before the owner can leave, and the queue with it.
        for _ in 0..=others {
            of.credits.give_back();
        }
        // SAFETY: `owner` was named by the slot, and nobody else can take its name out now; by the
        // invariant of `Outstanding` it is there until it has been told.
        unsafe { (owner.as_ref().ended)(owner, end) };
    }
}

#[pinned_drop]
impl PinnedDrop for Outstanding {
    fn drop(self: Pin<&mut Self>) {
        // Nothing completes any more. After a queue pair that was destroyed there is none.
        self.end_all(End::Lost);
    }
}
