// SPDX-License-Identifier: GPL-2.0

//! The requests of a queue pair that are under way, and who waits for them.
//!
//! What the device's completion leads to, a `cqe`, lies in a [`Slot`] and not with the task that
//! waits: the slots stay as long as the queue pair is there, so a completion that comes late, or
//! after its task has given up, finds nothing that is gone.

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

use core::ptr::null_mut;

use crate::{
    completion::Done,
    credits::Credits,
    wr::{
        WcStatus,
        WorkRequest,
        WrError, //
    }, //
};

/// The requests of one queue pair.
#[pin_data]
pub(super) struct Line {
    /// One for each request that may be under way, but for the one that drains the queue.
    #[pin]
    pub(super) credits: Credits,
    /// One for each credit, and one for draining.
    slots: KVec<Slot>,
    /// Where to look for a free slot.
    next: Atomic<usize>,
    /// What broke the queue pair; [`WcStatus::SUCCESS`] while nothing has.
    broken: Atomic<u32>,
}

/// A place for a request.
struct Slot {
    cqe: Opaque<rdma_bindings::ib_cqe>,
    /// Who waits for the request that has this place; null if it is free.
    waiter: Atomic<*mut Waiter<'static>>,
}

// SAFETY: Nothing in it is tied to a task: the `cqe` is constant, and the waiter is there as long
// as it is named here.
unsafe impl Send for Slot {}

// SAFETY: The `cqe` is constant and the pointer atomic.
unsafe impl Sync for Slot {}

impl Line {
    /// Slots for `depth` requests and one that drains the queue. May sleep.
    pub(super) fn new(depth: u32) -> Result<Arc<Self>> {
        let count = usize::try_from(depth)?.checked_add(1).ok_or(EOVERFLOW)?;
        let mut slots = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            let slot = Slot {
                cqe: Opaque::new(rdma_bindings::ib_cqe {
                    done: Some(Slot::complete),
                }),
                waiter: Atomic::new(null_mut()),
            };
            slots.push(slot, GFP_KERNEL)?;
        }
        Arc::pin_init(
            pin_init!(Self {
                credits <- Credits::new(depth),
                slots,
                next: Atomic::new(0),
                broken: Atomic::new(WcStatus::SUCCESS.as_raw()),
            }),
            GFP_KERNEL,
        )
    }

    /// What broke the queue pair, if anything has. Doesn't sleep.
    pub(super) fn broken(&self) -> Option<WcStatus> {
        let status = WcStatus::from_raw(self.broken.load(Relaxed));
        (status != WcStatus::SUCCESS).then_some(status)
    }

    /// The queue pair is broken. The first failure that is told is kept. Any context.
    pub(super) fn break_by(&self, status: WcStatus) {
        let first = WcStatus::from_raw(self.broken.load(Relaxed)).and(status);
        self.broken.store(first.as_raw(), Relaxed);
    }

    /// Posts a request for a waiter. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// - The queue pair must be there, and go before this line does.
    /// - A region that is to be registered must stay until the request has completed or the queue
    ///   pair is gone.
    /// - The waiter must not go before [`Waiter::begin_wait`], [`Waiter::nap`] or
    ///   [`Waiter::give_up`] has said that all requests have completed, or the last one has been
    ///   called.
    pub(super) unsafe fn post(
        &self,
        qp: *mut rdma_bindings::ib_qp,
        waiter: Pin<&Waiter<'_>>,
        request: &WorkRequest<'_>,
    ) -> Result<(), WrError> {
        let name = waiter.name();
        // INVARIANT: Counted before a slot names the waiter.
        waiter.left.fetch_add(1, Relaxed);
        let posted = match self.claim(name) {
            // SAFETY: The queue pair and the region are there as this function demands; the slot
            // is this line's, which stays longer than the queue pair.
            Some(slot) => unsafe { request.post(qp, slot.cqe.get()) }.inspect_err(|_| {
                slot.waiter.store(null_mut(), Relaxed);
            }),
            // There are as many as credits.
            None => Err(EBUSY),
        };
        posted.map_err(|error| {
            waiter.left.fetch_sub(1, Relaxed);
            WrError::Post(error)
        })
    }

    /// Takes a free slot.
    fn claim(&self, name: *mut Waiter<'static>) -> Option<&Slot> {
        let first = self.next.fetch_add(1, Relaxed) % self.slots.len().max(1);
        let (front, back) = self.slots.split_at_checked(first)?;
        let take = |slot: &&Slot| slot.waiter.cmpxchg(null_mut(), name, Full).is_ok();
        back.iter().find(take).or_else(|| front.iter().find(take))
    }
}

impl Slot {
    /// The completion callback, in softirq context.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of a request posted with the `cqe` of a slot that is there.
    unsafe extern "C" fn complete(_cq: *mut rdma_bindings::ib_cq, wc: *mut rdma_bindings::ib_wc) {
        // SAFETY: The caller vouches for `wc`; the `cqe` is the member that kernel users set.
        let (cqe, status) = unsafe { (*(*wc).__bindgen_anon_1.wr_cqe.as_ref(), (*wc).status) };
        let cqe = cqe.cast::<Opaque<rdma_bindings::ib_cqe>>();
        // SAFETY: The `cqe` is the member of a slot, which is there.
        let slot = unsafe { &*container_of!(cqe, Slot, cqe) };

        let waiter = slot.waiter.xchg(null_mut(), Full);
        if waiter.is_null() {
            // It has given up. The queue pair is done for, and the credit with it.
            return;
        }
        // SAFETY: It was named, and by the invariants of `Waiter` it is there until it has been
        // told; nobody else can take its name out of the slot now.
        unsafe { &*waiter }.complete(WcStatus::from_raw(status));
    }
}

/// A task that waits for the completion of its work requests, on its stack.
///
/// # Invariants
///
/// `left` is one more than the number of slots that name the waiter and of callbacks that have
/// taken its name and not told it yet, until [`Waiter::begin_wait`] takes that one. A waiter does
/// not go while there are any: who posts has promised that.
#[pin_data]
pub(super) struct Waiter<'a> {
    line: &'a Line,
    left: Atomic<u32>,
    status: Atomic<u32>,
    #[pin]
    done: Done,
}

impl<'a> Waiter<'a> {
    /// Initializes a waiter.
    pub(super) fn new(line: &'a Line) -> impl PinInit<Self> + 'a {
        // INVARIANT: Nothing has been posted.
        pin_init!(Self {
            line,
            left: Atomic::new(1),
            status: Atomic::new(WcStatus::SUCCESS.as_raw()),
            done <- Done::new(),
        })
    }

    /// What slots call it.
    fn name(self: Pin<&Self>) -> *mut Waiter<'static> {
        core::ptr::from_ref(self.get_ref()).cast_mut().cast()
    }

    /// One of the requests has ended. In softirq context.
    fn complete(&self, status: WcStatus) {
        if status != WcStatus::SUCCESS {
            self.line.break_by(status);
        }
        self.status
            .store(self.status().and(status).as_raw(), Relaxed);
        // Before the task can leave, and the line with it.
        self.line.credits.give_back();
        if self.left.fetch_sub(1, Full) == 1 {
            self.done.complete();
        }
    }

    /// How the requests that have completed ended, taken together.
    pub(super) fn status(&self) -> WcStatus {
        WcStatus::from_raw(self.status.load(Relaxed))
    }

    /// Nothing more will be posted. Returns whether all has completed. To be called once, and
    /// before [`Waiter::nap`].
    pub(super) fn begin_wait(self: Pin<&Self>) -> bool {
        // Acquires what the callbacks have released.
        self.left.fetch_sub(1, Full) == 1
    }

    /// Waits a while for the requests, and returns whether all have completed. Sleeps,
    /// uninterruptibly.
    pub(super) fn nap(self: Pin<&Self>) -> bool {
        self.done.nap()
    }

    /// Stops waiting, and returns whether all requests have completed after all. May sleep, for the
    /// time of a callback.
    pub(super) fn give_up(self: Pin<&Self>) -> bool {
        let mut given_up = 0;
        for slot in &self.line.slots {
            if slot.waiter.cmpxchg(self.name(), null_mut(), Full).is_ok() {
                given_up += 1;
            }
        }
        // INVARIANT: No slot names the waiter any more. The callbacks that have its name tell it.
        if given_up == 0 || self.left.fetch_sub(given_up, Full) != given_up {
            self.done.wait();
        }
        given_up == 0
    }
}
