// SPDX-License-Identifier: GPL-2.0

//! Who waits for work requests on its stack.

use kernel::{
    container_of,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed, //
    }, //
};

use core::{
    marker::PhantomPinned,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};

use crate::{
    completion::Done,
    credits::Credit,
    outstanding::{
        End,
        Outstanding,
        Owner, //
    },
    raw_wr::Post,
    together::{
        PostError,
        Together, //
    },
    wc::{
        WcStatus,
        WrError, //
    }, //
};

/// A task that waits for the completion of its work requests, on its stack.
///
/// # Invariants
///
/// `left` is one more than the number of slots that name the waiter and of callbacks that have
/// taken its name and not told it yet, until [`Waiter::begin_wait`] takes that one. A waiter does
/// not go while there are any: who posts has promised that. From then on `done` is what was given there.
#[pin_data]
pub(crate) struct Waiter<'a> {
    owner: Owner,
    queue: &'a Outstanding,
    left: Atomic<u32>,
    status: Atomic<u32>,
    /// What the last callback tells, since [`Waiter::begin_wait`].
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

    /// What slots call it.
    fn name(self: Pin<&Self>) -> NonNull<Owner> {
        let this = NonNull::from(self.get_ref());
        // SAFETY: `this` comes from a reference, so its member is there.
        unsafe { NonNull::new_unchecked(&raw mut (*this.as_ptr()).owner) }
    }

    /// Posts a request. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// - `qp` must be there, and not be destroyed before the request is posted; its completions
    ///   must end before the queue goes.
    /// - What the request refers to must stay until the request has completed or the queue pair is
    ///   gone.
    /// - The waiter must not go before [`Waiter::is_over`], [`Waiter::begin_wait`] or what that was given has said
    ///   that all requests have ended, or [`Waiter::give_up`] has been called.
    pub(crate) unsafe fn post(
        self: Pin<&Self>,
        qp: *mut rdma_bindings::ib_qp,
        credit: &Credit<'_>,
        request: impl Post,
    ) -> Result<(), WrError> {
        // SAFETY: `qp`, the waiter and what the request refers to stay as this function demands.
        self.counted(|owner| unsafe { self.queue.post(qp, credit, owner, request) })
    }

    /// As [`Waiter::post`], for the request that drains the queue, which needs no credit.
    ///
    /// # Safety
    ///
    /// As for [`Waiter::post`].
    pub(crate) unsafe fn post_last(
        self: Pin<&Self>,
        qp: *mut rdma_bindings::ib_qp,
        request: impl Post,
    ) -> Result<(), WrError> {
        // SAFETY: `qp`, the waiter and what the request refers to stay as this function demands.
        self.counted(|owner| unsafe { self.queue.post_last(qp, owner, request) })
    }

    /// Posts a request that is counted, unless it isn't posted.
    #[inline]
    fn counted(
        self: Pin<&Self>,
        post: impl FnOnce(NonNull<Owner>) -> Result,
    ) -> Result<(), WrError> {
        // INVARIANT: Counted before a slot names the waiter.
        self.left.fetch_add(1, Relaxed);
        post(self.name()).map_err(|error| {
            self.left.fetch_sub(1, Relaxed);
            WrError::Post(error)
        })
    }

    /// Posts requests about regions with one word to the device. Their end is told, unless the driver refuses all
    /// of them. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// As for [`Waiter::post`].
    pub(crate) unsafe fn post_together(
        self: Pin<&Self>,
        qp: *mut rdma_bindings::ib_qp,
        credit: &Credit<'_>,
        requests: &Together<'_>,
    ) -> Result<(), PostError> {
        // INVARIANT: Counted before a slot names the waiter.
        self.left.fetch_add(1, Relaxed);
        // SAFETY: `qp`, the waiter and what the requests refer to stay as this function demands.
        let posted = unsafe { self.queue.post_together(qp, credit, self.name(), requests) };
        posted.inspect_err(|refused| {
            if let PostError::All(_) = refused {
                self.left.fetch_sub(1, Relaxed);
            }
        })
    }

    /// One of the requests has ended. In any context.
    ///
    /// # Safety
    ///
    /// `owner` must be the member of a waiter that is there.
    unsafe fn ended(owner: NonNull<Owner>, end: &End<'_>) {
        // SAFETY: By this function's requirements it is the member of a waiter that is there.
        let this = unsafe { &*container_of!(owner.as_ptr(), Waiter<'_>, owner) };
        match end {
            // Most of them; there is nothing to be added to what is said of the others.
            End::Completed(told) if told.status() == WcStatus::SUCCESS => (),
            End::Completed(told) => {
                let both = this.status().and(told.status());
                this.status.store(both.as_raw(), Relaxed);
            }
            // For who has waited too long for it, that is known there.
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

    /// How the requests ended, taken together.
    #[inline]
    pub(crate) fn status(&self) -> WcStatus {
        WcStatus::from_raw(self.status.load(Relaxed))
    }

    /// How all requests ended, which they have. A request that had not completed when the queue pair was destroyed
    /// counts as flushed.
    #[inline]
    pub(crate) fn result(&self) -> Result<(), WrError> {
        self.status().to_result()
    }

    /// Whether all that was posted has ended. For who posts and waits, before
    /// [`Waiter::begin_wait`].
    pub(crate) fn is_over(&self) -> bool {
        // Acquires what the callbacks have released.
        self.left.load(Acquire) == 1
    }

    /// Nothing more will be posted: the last one who tells completes `done`. Returns whether all has ended, and then
    /// nobody does. To be called once.
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
