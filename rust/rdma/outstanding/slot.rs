// SPDX-License-Identifier: GPL-2.0

//! Slots of outstanding requests, the owners that get the completions, and the credits and status of a
//! queue.
//!
//! An *unsignaled* request completes only if it fails, and its owner is notified at once. Otherwise
//! the completion of a later request notifies the owner. In both cases the slot stays in use until
//! the later request has completed.

use crate::{
    credits::Credits,
    prelude::*,
    wc::RawCompletion, //
};

/// The owner of a slot whose request has not ended, but has no other owner left: the owner has been told of a
/// silent failure, or has given up.
// SAFETY: `nobody` may be called with any pointer.
static NOBODY: Owner = unsafe { Owner::new(nobody) };

/// Tells nobody.
///
/// # Safety
///
/// May be called with any pointer.
unsafe fn nobody(_: NonNull<Owner>, _: &End<'_>) {}

/// Of a request that isn't silent; no status of a completion.
const LOUD: u32 = u32::MAX;

/// A place for a request.
///
/// # Invariants
///
/// - `of` is the standing of the queue that has the slot.
/// - `before` is null, or leads from one silent slot of the same queue to the next; none of them ends in
///   another way before this one has ended, but with the queue.
pub(crate) struct Slot {
    pub(crate) cqe: Opaque<rdma_bindings::ib_cqe>,
    /// The owner of the request in this slot, or null if the slot is free.
    owner: Atomic<*mut Owner>,
    /// Number of credits that return with the completion: that of the request, and those of
    /// preceding requests without slots.
    credits: Atomic<u32>,
    /// Status of an unsignaled request as far as known, or [`LOUD`].
    silent: Atomic<u32>,
    /// An unsignaled request that completes with this one.
    before: Atomic<*mut Slot>,
    of: NonNull<Standing>,
}

// SAFETY: Any task may use a slot: `cqe` is constant, and `owner`, `before` and `of` are valid as
// long as the slot names them.
unsafe impl Send for Slot {}

// SAFETY: `cqe` and `of` are constant, and the others are atomic.
unsafe impl Sync for Slot {}

impl Slot {
    /// Creates free slots of the queue with this standing.
    pub(super) fn several(count: usize, of: NonNull<Standing>) -> Result<KVec<Self>> {
        let mut slots = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            // INVARIANT: `of` is the standing of the queue that gets the slots.
            let slot = Self {
                cqe: Opaque::new(rdma_bindings::ib_cqe {
                    done: Some(Self::complete),
                }),
                owner: Atomic::new(null_mut()),
                credits: Atomic::new(0),
                silent: Atomic::new(LOUD),
                before: Atomic::new(null_mut()),
                of,
            };
            slots.push(slot, GFP_KERNEL)?;
        }
        Ok(slots)
    }

    /// Claims the slot for an owner, if it is free. `credits` return when the request has
    /// completed.
    #[inline]
    pub(super) fn take(&self, owner: NonNull<Owner>, credits: u32) -> bool {
        let taken = self.owner.cmpxchg(null_mut(), owner.as_ptr(), Full).is_ok();
        if taken {
            self.credits.store(credits, Relaxed);
        }
        taken
    }

    /// Frees the slot.
    ///
    /// # Safety
    ///
    /// Its request must not have been posted.
    pub(crate) unsafe fn free(&self) {
        // The next owner's `credits` come after this one's.
        self.owner.store(null_mut(), Release);
    }

    /// Checks whether the slot is free.
    pub(super) fn is_free(&self) -> bool {
        self.owner.load(Relaxed).is_null()
    }

    /// Takes the owner out, if it is that one. The slot stays in use until its request has ended, so that the
    /// device has one request at most with the `cqe`.
    pub(super) fn forget(&self, owner: NonNull<Owner>) -> bool {
        let nobody = NonNull::from(&NOBODY);
        self.owner
            .cmpxchg(owner.as_ptr(), nobody.as_ptr(), Full)
            .is_ok()
    }

    /// Returns the slot of a `cqe`.
    ///
    /// # Safety
    ///
    /// `cqe` must be the member of a slot that is valid for `'a`.
    pub(super) unsafe fn of_cqe<'a>(cqe: *mut rdma_bindings::ib_cqe) -> &'a Self {
        let cqe = cqe.cast::<Opaque<rdma_bindings::ib_cqe>>();
        // SAFETY: `cqe` is the member of a slot valid for `'a` by the function's contract.
        unsafe { &*container_of!(cqe, Self, cqe) }
    }

    fn queue(&self) -> &Standing {
        // SAFETY: `of` is part of the queue that owns this slot by the type invariant, so it is
        // valid.
        unsafe { self.of.as_ref() }
    }

    /// Makes the request unsignaled.
    pub(super) fn silence(&self) {
        self.silent.store(WcStatus::SUCCESS.as_raw(), Relaxed);
        self.queue().silent.fetch_add(1, Relaxed);
    }

    /// Returns the end of an unsignaled request after later requests have completed, or [`None`] if
    /// the request is signaled.
    pub(super) fn ended_silently(&self) -> Option<End<'static>> {
        match self.silent.load(Relaxed) {
            LOUD => None,
            status => Some(End::Completed(RawCompletion::bare(WcStatus::from_raw(
                status,
            )))),
        }
    }

    /// Appends an unsignaled request to those that complete with this one.
    pub(super) fn follow(&self, before: &Slot) {
        let mut first = self;
        // SAFETY: `before` is null or a slot of the same queue by the type invariant. The queue is
        // valid as long as its slots.
        while let Some(slot) = unsafe { first.before.load(Relaxed).as_ref() } {
            first = slot;
        }
        // INVARIANT: `before` is an unsignaled slot of the same queue by the contract of
        // `Outstanding::follow`.
        first
            .before
            .store(core::ptr::from_ref(before).cast_mut(), Relaxed);
    }

    /// Handles the completion of a request, in softirq or in a task that polls.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of a request that was posted with the `cqe` of a valid slot.
    unsafe extern "C" fn complete(cq: *mut rdma_bindings::ib_cq, wc: *mut rdma_bindings::ib_wc) {
        // SAFETY: `wc` is valid for the call by the function's contract.
        let wc = unsafe { &*wc };
        // SAFETY: `wr_cqe` is the member that kernel users set.
        let cqe = *unsafe { wc.__bindgen_anon_1.wr_cqe.as_ref() };
        // SAFETY: `cqe` is the member of a valid slot by the function's contract.
        let slot = unsafe { Self::of_cqe(cqe) };
        // SAFETY: `cq` is the valid queue that calls this function, or null in KUnit tests.
        let told = unsafe { RawCompletion::new(cq, wc) };
        if slot.silent.load(Relaxed) == LOUD {
            let end = End::Completed(told);
            // Most have none before them that end with them.
            match slot.before.load(Relaxed).is_null() {
                true => slot.tell_owner(end, true),
                false => slot.tell(end),
            }
        } else if told.status != WcStatus::SUCCESS {
            slot.silent.store(told.status.as_raw(), Relaxed);
            slot.queue().break_by(told.status);
            slot.tell_failed(told);
        }
    }

    /// Tells the owner of a silent request, unless it has given up, that the request has failed. The slot stays
    /// taken: a request behind it may be about to name it as the one before. Afterwards nothing of the queue is
    /// touched.
    fn tell_failed(&self, told: RawCompletion<'_>) {
        let Some(named) = NonNull::new(self.owner.load(Relaxed)) else {
            return;
        };
        if self.forget(named) {
            // SAFETY: `named` was named by the slot, and nobody else can take its name out now; by the
            // invariant of the queue it is there until it has been told.
            unsafe { (named.as_ref().ended)(named, &End::Completed(told)) };
        }
    }

    /// Tells the owner, unless it has given up, and those of the silent requests that have ended with this
    /// one. Afterwards nothing of the queue is touched.
    pub(super) fn tell(&self, end: End<'_>) {
        let mut before = self.before.xchg(null_mut(), Relaxed);
        // A refused request was not posted, so it does not complete the preceding ones.
        if matches!(end, End::Refused(_)) {
            before = null_mut();
        }
        // SAFETY: By the type invariant it is null or a slot of the same queue, which is there: this one
        // has not been told.
        while let Some(slot) = unsafe { before.as_ref() } {
            before = slot.before.xchg(null_mut(), Relaxed);
            let end = match end {
                End::Completed(_) => slot.ended_silently().unwrap_or(end),
                other => other,
            };
            slot.tell_owner(end, false);
        }
        self.tell_owner(end, false);
    }

    /// Tells the owner, unless it has given up; the request is not silent if it `is_loud`, or else it may be.
    #[inline(always)]
    fn tell_owner(&self, end: End<'_>, is_loud: bool) {
        // Before the slot can be taken by somebody else.
        let credits = self.credits.load(Relaxed);
        let Some(mut owner) = NonNull::new(self.owner.load(Relaxed)) else {
            return;
        };
        // Makes the request signaled.
        let is_silent = !is_loud && self.silent.load(Relaxed) != LOUD;
        if is_silent && self.silent.xchg(LOUD, Relaxed) != LOUD {
            self.queue().silent.fetch_sub(1, Relaxed);
        }
        while let Err(now) = self.owner.cmpxchg(owner.as_ptr(), null_mut(), Full) {
            // The owner has just given up, or another task has told it.
            let nobody = NonNull::from(&NOBODY);
            if now != nobody.as_ptr() {
                return;
            }
            owner = nobody;
        }
        let of = self.queue();
        match end {
            End::Completed(told) if told.status == WcStatus::SUCCESS => (),
            End::Completed(told) => of.break_by(told.status),
            End::Refused(_) => (),
            End::Gone | End::Lost => of.break_by(WcStatus::FLUSHED),
        }
        // Before the owner can leave, and the queue with it.
        of.credits.give_back(credits);
        // SAFETY: `owner` was named by the slot, and nobody else can take its name out now; by the
        // invariant of the queue it is there until it has been told.
        unsafe { (owner.as_ref().ended)(owner, &end) };
    }
}

/// How a request ended.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    /// It has completed.
    Completed(RawCompletion<'a>),
    /// It has not been posted after all.
    Refused(Error),
    /// It did not complete, and its queue pair has been destroyed.
    Gone,
    /// It did not complete, and its queue pair could not be destroyed.
    Lost,
}

/// The completion target embedded in a waiter or request, which a slot points to.
pub(crate) struct Owner {
    pub(super) ended: unsafe fn(NonNull<Owner>, &End<'_>),
}

impl Owner {
    /// Creates an owner. Each request calls `ended` once, in any context.
    ///
    /// # Safety
    ///
    /// `ended` must be sound to call with a pointer to this value, as long as the contract of
    /// [`Outstanding::claim`] demands that the value is valid.
    pub(crate) const unsafe fn new(ended: unsafe fn(NonNull<Owner>, &End<'_>)) -> Self {
        Self { ended }
    }
}

/// The credits of a queue, and the status that broke the queue.
#[pin_data]
pub(super) struct Standing {
    /// A credit for each request, except for the one that drains the queue.
    #[pin]
    pub(super) credits: Credits,
    /// Number of pending unsignaled requests.
    pub(super) silent: Atomic<usize>,
    /// The status that broke the queue.
    pub(super) broken: Atomic<u32>,
    /// Queue pairs share the queue: a failure of one of them does not break the queue.
    shared: bool,
}

impl Standing {
    /// Creates the credits for `depth` requests.
    pub(super) fn new(depth: u32, shared: bool) -> impl PinInit<Self> {
        pin_init!(Self {
            credits <- Credits::new(depth),
            silent: Atomic::new(0),
            broken: Atomic::new(WcStatus::SUCCESS.as_raw()),
            shared,
        })
    }

    /// Marks the queue as broken, and keeps the first status. Any context.
    pub(super) fn break_by(&self, status: WcStatus) {
        if self.shared {
            return;
        }
        let mut broken = self.broken.load(Relaxed);
        loop {
            let first = WcStatus::from_raw(broken).and(status);
            match self.broken.cmpxchg(broken, first.as_raw(), Release) {
                Ok(_) => return,
                Err(now) => broken = now,
            }
        }
    }
}

#[kernel::macros::kunit_tests(rdma_slot)]
mod tests {
    use super::*;
    use crate::outstanding::Outstanding;

    /// Claims a slot and a credit for the last of `count` requests.
    fn claim<'a>(queue: &'a Outstanding, owner: &Owner, requests: u32) -> Result<&'a Slot> {
        let credit = queue.credits().try_take().ok_or(EAGAIN)?;
        // SAFETY: The owner is static or outlives the request in each test.
        let slot = unsafe { queue.claim(&credit, NonNull::from(owner), requests) };
        credit.keep();
        slot.ok_or(EBUSY)
    }

    #[test]
    fn the_last_of_several_gives_the_credits_of_all_back() -> Result {
        let queue = Outstanding::new(8)?;
        // SAFETY: `nobody` may be called with any pointer.
        let owner = unsafe { Owner::new(nobody) };
        let completed = End::Completed(RawCompletion::bare(WcStatus::SUCCESS));
        for end in [completed, completed, End::Gone, End::Lost] {
            assert_eq!(queue.credits().take_some(5), 5);
            let slot = claim(&queue, &owner, 6)?;
            assert!(!queue.is_idle());
            slot.tell(end);
            assert_eq!(queue.credits().left(), 8);
            assert!(queue.is_idle());
        }
        // A preceding request of the last user of a slot does not precede the next user.
        claim(&queue, &owner, 1)?.tell(completed);
        assert_eq!(queue.credits().left(), 8);
        Ok(())
    }

    #[test]
    fn a_slot_that_is_free_is_found_while_others_come_and_go() -> Result {
        let queue = Outstanding::new(2)?;
        // SAFETY: `nobody` may be called with any pointer.
        let owner = unsafe { Owner::new(nobody) };
        let completed = End::Completed(RawCompletion::bare(WcStatus::SUCCESS));
        let before = claim(&queue, &owner, 1)?;
        let _credit = queue.credits().try_take().ok_or(EAGAIN)?;
        let mut looks = 0;
        let mut other = None;
        let found = queue.claim_any(0, |slot| {
            let taken = slot.take(NonNull::from(&owner), 1);
            looks += 1;
            if looks == 1 {
                // Just when it was seen to be taken it is free, and somebody takes the next one.
                before.tell(completed);
                other = claim(&queue, &owner, 1).ok();
            }
            taken || looks > 9
        });
        assert!(other.is_some_and(|other| !core::ptr::eq(other, before)));
        assert!(found.is_some_and(|found| core::ptr::eq(found, before)));
        // The third look: it has looked at all of them once before.
        assert_eq!(looks, 3);
        queue.end_all(completed);
        Ok(())
    }

    #[test]
    fn draining_takes_no_credit_and_gives_none_back() -> Result {
        let queue = Outstanding::new(1)?;
        // SAFETY: `nobody` may be called with any pointer.
        let owner = unsafe { Owner::new(nobody) };
        let completed = End::Completed(RawCompletion::bare(WcStatus::SUCCESS));
        let slot = claim(&queue, &owner, 1)?;
        let last = queue.slots.last().ok_or(EINVAL)?;
        assert!(last.take(NonNull::from(&owner), 0));
        assert!(!last.take(NonNull::from(&owner), 0));
        last.tell(completed);
        assert_eq!(queue.credits().left(), 0);
        slot.tell(completed);
        assert_eq!(queue.credits().left(), 1);
        assert!(queue.is_idle());
        Ok(())
    }

    /// How many owners have been told that their requests have failed.
    static FAILED: Atomic<u32> = Atomic::new(0);

    /// Counts failed completions.
    ///
    /// # Safety
    ///
    /// The function accepts any pointer.
    unsafe fn counted(_: NonNull<Owner>, end: &End<'_>) {
        if matches!(end, End::Completed(told) if told.status != WcStatus::SUCCESS) {
            FAILED.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_drain_that_gave_up_leaves_its_slot_to_its_request() -> Result {
        let queue = Outstanding::new(1)?;
        // SAFETY: `counted` may be called with any pointer.
        let owner = unsafe { Owner::new(counted) };
        let name = NonNull::from(&owner);
        let flushed = End::Completed(RawCompletion::bare(WcStatus::FLUSHED));
        FAILED.store(0, Relaxed);
        for told in 0..2 {
            // SAFETY: The owner outlives its requests.
            let slot = unsafe { queue.claim_last(name) }.ok_or(EBUSY)?;
            assert_eq!(queue.forget(name), 1);
            // The device still has the request, so a second drain must not post another one.
            // SAFETY: The owner outlives its requests.
            assert!(unsafe { queue.claim_last(name) }.is_none());
            assert!(!queue.is_idle());
            slot.tell(flushed);
            assert!(queue.is_idle());
            // SAFETY: The owner outlives its requests.
            let slot = unsafe { queue.claim_last(name) }.ok_or(EBUSY)?;
            // Only the owner that waits is told.
            assert_eq!(FAILED.load(Relaxed), told);
            slot.tell(flushed);
        }
        assert_eq!(FAILED.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn a_silent_failure_is_told_at_once_and_once() -> Result {
        let queue = Outstanding::new(2)?;
        // SAFETY: `counted` may be called with any pointer.
        let owner = unsafe { Owner::new(counted) };
        FAILED.store(0, Relaxed);
        for behind in [true, false] {
            let silent = claim(&queue, &owner, 1)?;
            silent.silence();
            let last = claim(&queue, &owner, 1)?;
            if behind {
                last.follow(silent);
            }
            let mut wc = rdma_bindings::ib_wc {
                status: WcStatus::FLUSHED.as_raw(),
                ..Default::default()
            };
            // SAFETY: This is the member that kernel users set.
            *unsafe { wc.__bindgen_anon_1.wr_cqe.as_mut() } = silent.cqe.get();
            // SAFETY: `wc` is the completion of a request with the `cqe` of a slot, which `queue` has.
            unsafe { Slot::complete(null_mut(), &mut wc) };
            assert_eq!(FAILED.xchg(0, Relaxed), 1);
            // Until what is behind it has ended, nobody else gets the slot.
            assert!(!silent.is_free());
            last.tell(End::Completed(RawCompletion::bare(WcStatus::FLUSHED)));
            assert_eq!(FAILED.xchg(0, Relaxed), 1);
            if !behind {
                queue.end_silent();
                assert_eq!(FAILED.load(Relaxed), 0);
            }
            assert!(queue.is_idle());
        }
        Ok(())
    }
}
