// SPDX-License-Identifier: GPL-2.0

//! A waiter on the stack for the completion of work requests.

use crate::{
    completion::Done,
    credits::Credit,
    outstanding::{
        End,
        Owner,
        Slot, //
    },
    prelude::*,
    wr_batch::{
        PostError,
        WrBatch, //
    }, //
};
use core::marker::PhantomPinned;

/// A task that waits for the completion of its work requests, on its stack.
///
/// # Invariants
///
/// Until [`Waiter::begin_wait`], `left` is one more than the number of slots and callbacks that
/// will notify the waiter. The waiter outlives both by the contract of `post`. After `begin_wait`,
/// `done` is its argument.
#[pin_data]
pub(crate) struct Waiter<'a> {
    owner: Owner,
    queue: &'a Outstanding,
    left: Atomic<u32>,
    status: Atomic<u32>,
    /// The completion that the last callback signals. [`Waiter::begin_wait`] sets it.
    done: Atomic<*mut Done>,
    /// Slots name it where it is.
    #[pin]
    _pin: PhantomPinned,
}

impl<'a> Waiter<'a> {
    /// Initializes a waiter.
    pub(crate) fn new(queue: &'a Outstanding) -> impl PinInit<Self> + 'a {
        // INVARIANT: Nothing has been posted.
        pin_init!(Self {
            // SAFETY: `ended` is called with a pointer to the member of a waiter that is there.
            owner: unsafe { Owner::new(Self::ended) },
            queue,
            left: Atomic::new(1),
            status: Atomic::new(WcStatus::SUCCESS.as_raw()),
            done: Atomic::new(null_mut()),
            _pin: PhantomPinned,
        })
    }

    /// Returns the owner for slots.
    fn name(self: Pin<&Self>) -> NonNull<Owner> {
        let this = NonNull::from(self.get_ref());
        // SAFETY: `this` comes from a reference, so its member is there.
        unsafe { NonNull::new_unchecked(&raw mut (*this.as_ptr()).owner) }
    }

    /// Posts a request by `post`, which gets its `cqe`. Does not sleep.
    ///
    /// # Safety
    ///
    /// - If `post` succeeds, the request with the `cqe` must be posted. Its completion must end
    ///   before the queue is freed.
    /// - If `post` fails, no completion may refer to the `cqe`.
    /// - The memory of the request must stay valid until the request has completed or the queue
    ///   pair has been destroyed.
    /// - The waiter must stay valid until [`Waiter::give_up`] has returned, or the end of all
    ///   requests was reported. [`Waiter::is_over`], [`Waiter::begin_wait`] and the completion that
    ///   the waiter was given report that end.
    #[inline]
    pub(crate) unsafe fn post(
        self: Pin<&Self>,
        credit: &Credit<'_>,
        post: impl FnOnce(*mut rdma_bindings::ib_cqe) -> Result,
    ) -> Result<(), WrError> {
        // SAFETY: The waiter is valid until it has been notified, by the function's contract.
        let claim = |owner| unsafe { self.queue.claim(credit, owner, 1) };
        self.post_in(claim, post, EBUSY, |_| true)
            .map_err(WrError::Post)
    }

    /// Posts the request that drains the queue, which needs no credit. Does not sleep.
    ///
    /// # Safety
    ///
    /// The requirements of [`Waiter::post`].
    pub(crate) unsafe fn post_last(
        self: Pin<&Self>,
        post: impl FnOnce(*mut rdma_bindings::ib_cqe) -> Result,
    ) -> Result<(), WrError> {
        // SAFETY: The waiter is valid until it has been notified, by the function's contract.
        let claim = |owner| unsafe { self.queue.claim_last(owner) };
        self.post_in(claim, post, EBUSY, |_| true)
            .map_err(WrError::Post)
    }

    /// Posts requests about regions with one doorbell. Unless the driver refuses all of them, their
    /// end notifies the waiter. Each request has a credit; `credit` is one of these. Does not
    /// sleep.
    ///
    /// # Safety
    ///
    /// - `qp` must be valid, and its completions must end before the queue is freed.
    /// - The regions of the requests must stay valid until the requests have completed or the queue
    ///   pair has been destroyed.
    /// - The waiter must stay valid as for [`Waiter::post`].
    pub(crate) unsafe fn post_together(
        self: Pin<&Self>,
        qp: *mut rdma_bindings::ib_qp,
        credit: &Credit<'_>,
        requests: &WrBatch<'_>,
    ) -> Result<(), PostError> {
        // SAFETY: The waiter is valid until it has been notified, by the function's contract.
        let claim = |owner| unsafe { self.queue.claim(credit, owner, requests.count()) };
        // SAFETY: `qp` and the regions are valid by the function's contract. Both `cqe`s belong to
        // the queue, which outlives its completions.
        let post = |cqe| unsafe { requests.post(qp, self.queue.quiet.get(), cqe) };
        let is_all = |error: &PostError| matches!(error, PostError::All(_));
        self.post_in(claim, post, PostError::All(EBUSY), is_all)
    }

    /// Claims a slot by `claim`, and calls `post` with its `cqe`. Returns `busy` if there is no
    /// slot. If `is_all` returns true for an error, nothing was posted, and the slot is freed.
    #[inline]
    fn post_in<E>(
        self: Pin<&Self>,
        claim: impl FnOnce(NonNull<Owner>) -> Option<&'a Slot>,
        post: impl FnOnce(*mut rdma_bindings::ib_cqe) -> Result<(), E>,
        busy: E,
        is_all: impl FnOnce(&E) -> bool,
    ) -> Result<(), E> {
        // INVARIANT: Counted before a slot names the waiter.
        self.left.fetch_add(1, Relaxed);
        let slot = claim(self.name());
        let posted = slot.map_or(Err(busy), |slot| post(slot.cqe.get()));
        posted.inspect_err(|error| {
            if is_all(error) {
                // SAFETY: `is_all` returns true only if nothing was posted.
                slot.inspect(|slot| unsafe { slot.free() });
                // INVARIANT: No slot names the waiter for this request.
                self.left.fetch_sub(1, Relaxed);
            }
        })
    }

    /// Handles the completion of a request. Any context.
    ///
    /// # Safety
    ///
    /// `owner` must be the member of a waiter that is there.
    unsafe fn ended(owner: NonNull<Owner>, end: &End<'_>) {
        // SAFETY: `owner` is the member of a valid waiter by the function's contract.
        let this = unsafe { &*container_of!(owner.as_ptr(), Waiter<'_>, owner) };
        match end {
            // Most of them; there is nothing to be added to what is said of the others.
            End::Completed(told) if told.status == WcStatus::SUCCESS => (),
            End::Completed(told) => {
                let both = this.status().and(told.status);
                this.status.store(both.as_raw(), Relaxed);
            }
            // The waiter knows of a late completion itself.
            End::Refused(_) | End::Gone | End::Lost => {
                let both = this.status().and(WcStatus::FLUSHED);
                this.status.store(both.as_raw(), Relaxed);
            }
        }
        if this.left.fetch_sub(1, Full) == 1 {
            // SAFETY: By the type invariant it is what `begin_wait` was given, since that has taken what
            // is left beside those who tell; it is there as long as the waiter would have to be.
            unsafe { &*this.done.load(Relaxed) }.complete();
        }
    }

    /// Returns the combined status of the requests.
    #[inline]
    pub(crate) fn status(&self) -> WcStatus {
        WcStatus::from_raw(self.status.load(Relaxed))
    }

    /// Returns the combined result of the requests, which have all completed. A request that had
    /// not completed when its queue pair was destroyed counts as flushed.
    #[inline]
    pub(crate) fn result(&self) -> Result<(), WrError> {
        self.status().to_result()
    }

    /// Checks whether all posted requests have completed. For a task that posts and waits, before
    /// [`Waiter::begin_wait`].
    pub(crate) fn is_over(&self) -> bool {
        // Acquires what the callbacks have released.
        self.left.load(Acquire) == 1
    }

    /// Ends posting: the last completion signals `done`. Returns true if all requests have
    /// completed already, in which case `done` is not signaled. Must be called once.
    ///
    /// # Safety
    ///
    /// `done` must stay as long as the waiter must.
    pub(crate) unsafe fn begin_wait(self: Pin<&Self>, done: Pin<&Done>) -> bool {
        self.done
            .store(core::ptr::from_ref(done.get_ref()).cast_mut(), Relaxed);
        // INVARIANT: `done` is stored. Acquires what the callbacks have released.
        self.left.fetch_sub(1, Full) == 1
    }

    /// Stops waiting, and returns whether all requests have ended after all. May sleep, for the
    /// time of a callback. `done` must be what [`Waiter::begin_wait`] was given.
    pub(crate) fn give_up(self: Pin<&Self>, done: Pin<&Done>) -> bool {
        let given_up = self.queue.forget(self.name());
        // INVARIANT: No slot names the waiter any more. The callbacks that have its name tell it.
        if given_up == 0 || self.left.fetch_sub(given_up, Full) != given_up {
            done.wait();
        }
        given_up == 0
    }
}
