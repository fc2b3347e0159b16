// SPDX-License-Identifier: GPL-2.0

//! A queue of a controller, as its requests and events use it.

use crate::{
    ctrl::Ctrl,
    pdu::TagParts,
    prelude::*,
    sendings::Sendings, //
};
use kernel::time::{
    Instant,
    Monotonic, //
};

/// The phase of a queue.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    /// The gate is not open, and no request has a key. A new queue is in this phase.
    Stopped,
    /// The gate is open.
    Open,
    /// The gate is shut since then. Requests may have keys.
    Stopping(Instant<Monotonic>),
}

/// A queue of a controller.
///
/// # Invariants
///
/// `ctrl` and `tags` are valid while the gate has users, or while the caller has the controller.
#[pin_data]
pub(crate) struct HostQueue<T: TagParts> {
    ctrl: Ctrl,
    /// The number of the queue. The admin queue has number 0.
    pub(crate) qid: u16,
    tags: *mut bindings::blk_mq_tag_set,
    /// The connection.
    #[pin]
    pub(crate) gate: Gate<T::Queue, Shared>,
    /// The users of the gate that are sendings.
    pub(crate) sendings: Sendings,
    /// Locked while a queue is opened or stopped.
    #[pin]
    pub(crate) phase: Mutex<Phase>,
    /// Connect has succeeded, so that nvme-core may send all commands.
    pub(crate) is_live: Atomic<bool>,
    /// The connection is broken, as far as events tell.
    pub(crate) is_broken: Atomic<bool>,
    /// Maximum number of requests under way; or 0 if there are no more tags than that.
    pub(crate) places: Atomic<u32>,
    /// Number of requests under way, if `places` is not 0.
    pub(crate) taken: Atomic<u32>,
}

// SAFETY: The pointers are those of a controller, which any task may use. The rest is `Send`.
unsafe impl<T: TagParts> Send for HostQueue<T> {}
// SAFETY: The pointers are those of a controller, which any task may use. The rest is `Sync`.
unsafe impl<T: TagParts> Sync for HostQueue<T> {}

/// Makes the lock of a queue. Not generic and not inlined: all transports share the key of its lock class, so they
/// must share the name, too.
#[inline(never)]
fn new_phase() -> impl PinInit<Mutex<Phase>> {
    new_mutex!(Phase::Stopped, "nvme_queue")
}

impl<T: TagParts> HostQueue<T> {
    /// Makes a queue without a connection, whose tags are those of `tags`. May sleep.
    ///
    /// # Safety
    ///
    /// The controller must have `tags`, and must stop the queue before it goes.
    pub(crate) unsafe fn new(
        ctrl: Ctrl,
        qid: u16,
        tags: *mut bindings::blk_mq_tag_set,
    ) -> Result<Arc<Self>> {
        // INVARIANT: The caller promises that the controller outlives all users.
        Arc::pin_init(
            try_pin_init!(Self {
                ctrl,
                qid,
                tags,
                gate <- Gate::empty(),
                sendings: Sendings::new(),
                phase <- new_phase(),
                is_live: Atomic::new(false),
                is_broken: Atomic::new(false),
                places: Atomic::new(0),
                taken: Atomic::new(0),
            }? Error),
            GFP_KERNEL,
        )
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
        self.is_live.load(Relaxed)
    }

    /// Checks whether the connection is marked as broken. Any context.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Acquire)
    }

    /// Marks the connection as broken. Any context.
    pub(crate) fn set_broken(&self) {
        self.is_broken.xchg(true, Full);
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
}
