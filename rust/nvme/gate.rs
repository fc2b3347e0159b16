// SPDX-License-Identifier: GPL-2.0

//! The gate in front of the connection of a queue.
//!
//! The gate counts its users: calls into the transport, and each [`Request`](crate::Request) and
//! [`Sending`](crate::Sending). The task that stops the queue closes the gate and
//! waits until all users have left, or all but the sendings that a device does not return.

use crate::{
    ctrl::Ctrl,
    prelude::*,
    sendings::Sendings, //
};

/// The gate is closed. The other bits of `users` count the users.
const CLOSED: usize = 1;
/// One user.
const USER: usize = 2;

/// The gate of a queue, with the fields of the queue that its events use.
///
/// # Invariants
///
/// `ctrl` and `tags` are valid while the gate has users, or while the caller has the controller.
pub(crate) struct QueueGate {
    ctrl: Ctrl,
    qid: u16,
    tags: *mut bindings::blk_mq_tag_set,
    users: Atomic<usize>,
    /// The users that are sendings.
    pub(crate) sendings: Sendings,
    /// Connect has succeeded, so that nvme-core may send all commands.
    live: Atomic<bool>,
    /// The connection is broken, as far as events tell.
    broken: Atomic<bool>,
    /// Maximum number of requests under way; or 0 if there are no more tags than that.
    places: Atomic<u32>,
    /// Number of requests under way, if `places` is not 0.
    taken: Atomic<u32>,
}

// SAFETY: The pointers are those of a controller, which any task may use. The rest is atomic.
unsafe impl Send for QueueGate {}
// SAFETY: The pointers are those of a controller, which any task may use. The rest is atomic.
unsafe impl Sync for QueueGate {}

impl QueueGate {
    /// Makes the closed gate of a queue, whose tags are those of `tags`.
    ///
    /// # Safety
    ///
    /// The controller must have `tags`, and must close the gate before it goes.
    pub(crate) unsafe fn new(ctrl: Ctrl, qid: u16, tags: *mut bindings::blk_mq_tag_set) -> Self {
        // INVARIANT: The caller promises that the controller outlives all users.
        Self {
            ctrl,
            qid,
            tags,
            users: Atomic::new(CLOSED),
            sendings: Sendings::new(),
            live: Atomic::new(false),
            broken: Atomic::new(false),
            places: Atomic::new(0),
            taken: Atomic::new(0),
        }
    }

    /// Returns the number of the queue. The admin queue has number 0.
    pub(crate) fn qid(&self) -> u16 {
        self.qid
    }

    /// Returns the tag set of the queue, and the index of the queue in it.
    pub(crate) fn tags(&self) -> (*mut bindings::blk_mq_tag_set, u32) {
        (self.tags, u32::from(self.qid.saturating_sub(1)))
    }

    /// Returns the controller.
    ///
    /// # Safety
    ///
    /// The controller must exist while the result is used.
    pub(crate) unsafe fn ctrl(&self) -> Ctrl {
        self.ctrl
    }

    /// Checks whether nvme-core may send all commands. Any context.
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Relaxed)
    }

    /// Says whether nvme-core may send all commands.
    pub(crate) fn set_live(&self, live: bool) {
        self.live.store(live, Release);
    }

    /// Checks whether the connection is marked as broken. Any context.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Acquire)
    }

    /// Marks the connection as broken. Any context.
    pub(crate) fn set_broken(&self) {
        self.broken.xchg(true, Full);
    }

    /// Removes the mark. No event may come meanwhile that would set it.
    pub(crate) fn clear_broken(&self) {
        self.broken.store(false, Relaxed);
    }

    /// Checks whether the gate is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.users.load(Relaxed) & CLOSED != 0
    }

    /// Opens the gate for a connection that takes `places` requests, which may be fewer than there are
    /// tags. The caller makes sure that it is closed, and that nobody else opens or closes it.
    pub(crate) fn open(&self, places: u32) {
        // SAFETY: The controller exists, as it opens the gate. `queue_depth` is written before the first
        // request, which is later.
        let tags = unsafe { (*self.tags).queue_depth };
        self.places
            .store(if places < tags { places } else { 0 }, Relaxed);
        self.taken.store(0, Relaxed);
        self.users.fetch_sub(CLOSED, Full);
    }

    /// Counts a request as under way. Returns false if that is one too many. The caller must
    /// [take that back](Self::put_place) when the request ends or is refused. Any context.
    pub(crate) fn take_place(&self) -> bool {
        let places = self.places.load(Relaxed);
        places == 0 || self.taken.fetch_add(1, Relaxed) < places
    }

    /// Takes [`take_place`](Self::take_place) back. Any context.
    pub(crate) fn put_place(&self) {
        if self.places.load(Relaxed) != 0 {
            self.taken.fetch_sub(1, Relaxed);
        }
    }

    /// Closes the gate. The caller makes sure that it is open, and that nobody else opens or closes it.
    pub(crate) fn close(&self) {
        self.users.fetch_add(CLOSED, Full);
    }

    /// Returns the number of users.
    pub(crate) fn users(&self) -> usize {
        self.users.load(Acquire) / USER
    }

    /// Adds a user for a task that is one. Any context.
    pub(crate) fn count_again(&self) {
        self.users.add(USER, Relaxed);
    }

    /// Enters the gate. Returns `None` if it is closed. Any context.
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        let is_open = self.users.fetch_add(USER, Full) & CLOSED == 0;
        // INVARIANT: Just counted. If the gate is closed, dropping the value takes that back.
        let entered = Entered(self);
        is_open.then_some(entered)
    }

    /// Stops being a user. Any context.
    ///
    /// # Safety
    ///
    /// The caller must have been counted, and must not use the connection behind the gate any more.
    pub(crate) unsafe fn leave(this: NonNull<Self>) {
        // SAFETY: The gate exists while it has users.
        unsafe { this.as_ref() }.users.fetch_sub(USER, Full);
    }
}

/// A user of a gate.
///
/// # Invariants
///
/// The gate has counted this value.
pub(crate) struct Entered<'a>(&'a QueueGate);

impl Entered<'_> {
    /// Returns the controller.
    pub(crate) fn ctrl(&self) -> &Ctrl {
        &self.0.ctrl
    }

    /// Hands the count over to the caller.
    pub(crate) fn into_count(self) -> NonNull<QueueGate> {
        NonNull::from(ManuallyDrop::new(self).0)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // SAFETY: This value was counted.
        unsafe { QueueGate::leave(NonNull::from(self.0)) };
    }
}
