// SPDX-License-Identifier: GPL-2.0

//! Completion queues, and the callbacks of completions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_cq`
//!
//! A queue is *polled* while nobody listens: it requests no interrupt, and a waiter takes the
//! completions out. A waiter that sleeps listens, which *arms* the queue: softirq takes the
//! completions out. Only one of both runs at a time. Callbacks run one at a time in the order of
//! the completions, and each completion is taken out once. A task that does not sleep arms the queue by
//! [`Cq::arm`].
//!
//! No completion is lost when a queue is armed: earlier completions are found then, and later ones
//! raise an interrupt.
//!
//! Lock order: the lock of a queue is a leaf. Callbacks don't run under it, but for those of
//! `settle()`.

use crate::{
    prelude::*,
    wc::CqId, //
};
use kernel::{
    cpu::nr_cpu_ids,
    new_mutex,
    sync::Mutex,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// A completion queue.
///
/// Wraps the C `struct ib_cq`, and holds its device. Callbacks of requests are called by whoever
/// reaps it, or in softirq context as long as somebody listens.
///
/// It can't overrun: a queue pair reserves an entry for each of its requests.
///
/// Dropping it, which may sleep, ends all callbacks. If a queue pair that completes to it could
/// not be destroyed, it is left to the device, but nobody polls it any more: what completes after
/// that leads nowhere, so that the callbacks' data and code can go.
///
/// # Examples
///
/// ```ignore
/// // Room for what two queues of a queue pair have under way.
/// let entries = depths.in_send_queue() + depths.in_receive_queue();
/// let cq = Cq::alloc(&pd.device, entries, None)?;
/// cq.add_listener();
/// ```
///
/// # Invariants
///
/// - `cq` is a completion queue of `device` that is freed only here.
/// - While `quiet` it is disabled for the RDMA core, which calls no callbacks then.
/// - `quiet` changes only while the task that changes it has set `reaping`.
#[pin_data(PinnedDrop)]
pub struct Cq {
    cq: NonNull<rdma_bindings::ib_cq>,
    device: ARef<Device>,
    quiet: Atomic<bool>,
    /// A task takes completions out of the quiet queue, or changes `quiet`.
    reaping: Atomic<bool>,
    /// True if a queue pair that completes here could not be destroyed.
    stuck: Atomic<bool>,
    /// Number of listeners. It changes under the lock of `arming`.
    listeners: Atomic<u32>,
    #[pin]
    arming: Mutex<()>,
    /// Softirq must take out the next completion.
    armed: Atomic<bool>,
    /// How many look for completions again and again.
    pollers: Atomic<u32>,
    /// How many entries nobody has reserved.
    free: Atomic<u32>,
    /// The queues of requests whose completions arrive here. Dropped after `cq` is freed.
    #[pin]
    kept: Mutex<KVec<Arc<Outstanding>>>,
}

// SAFETY: A completion queue is not tied to a task, and the other fields are `Send`.
unsafe impl Send for Cq {}

// SAFETY: The C side does its own locking, and the other fields are `Sync`.
unsafe impl Sync for Cq {}

impl Cq {
    /// Allocates a completion queue with `entries` entries, to which nobody listens. `cpu` selects
    /// its completion vector. May sleep.
    pub fn alloc(device: &ARef<Device>, entries: u32, cpu: Option<u32>) -> Result<Arc<Self>> {
        let cpu = cpu.map_or(-1, |cpu| c_int::try_from(cpu).unwrap_or(c_int::MAX));
        Arc::pin_init(
            // INVARIANT: The queue is new, of `device` and quiet, as the helper says. `drop()` frees
            // it: no initializer after it fails.
            try_pin_init!(Self {
                cq: {
                    // SAFETY: `device` is valid as a reference.
                    let cq = unsafe {
                        rdma_bindings::rdma_helper_alloc_cq(device.as_raw(), entries, cpu)
                    };
                    NonNull::new(from_err_ptr(cq)?).ok_or(ENOMEM)?
                },
                device: device.clone(),
                quiet: Atomic::new(true),
                reaping: Atomic::new(false),
                stuck: Atomic::new(false),
                listeners: Atomic::new(0),
                arming <- new_mutex!(()),
                armed: Atomic::new(false),
                pollers: Atomic::new(0),
                free: Atomic::new(entries),
                kept <- new_mutex!(KVec::new()),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Reserves `count` entries for requests of `queue`. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSPC` if fewer entries are left.
    /// - `ENOMEM`
    pub(crate) fn reserve(
        self: &Arc<Self>,
        entries: u32,
        queue: &Arc<Outstanding>,
    ) -> Result<Entries> {
        let mut free = self.free.load(Relaxed);
        loop {
            let left = free.checked_sub(entries).ok_or(ENOSPC)?;
            // Pairs with the release in `Entries::drop`: the requests that had the entries have ended.
            match self.free.cmpxchg(free, left, Acquire) {
                Ok(_) => break,
                Err(now) => free = now,
            }
        }
        let reserved = Entries {
            cq: self.clone(),
            count: entries,
            queue: queue.clone(),
        };
        if entries > 0 {
            self.kept.lock().push(queue.clone(), GFP_KERNEL)?;
        }
        Ok(reserved)
    }

    /// Returns the identity of the queue, which is unique while the queue exists.
    pub fn id(&self) -> CqId {
        // SAFETY: `cq` is valid as long as `self`, by the type invariant.
        unsafe { CqId::of(self.as_raw()) }
    }

    /// Returns the raw pointer.
    pub(crate) fn as_raw(&self) -> *mut rdma_bindings::ib_cq {
        self.cq.as_ptr()
    }
}

/// Entries of a completion queue that are reserved for the requests of one queue.
///
/// Dropping them gives them back, and may sleep.
pub(crate) struct Entries {
    cq: Arc<Cq>,
    count: u32,
    queue: Arc<Outstanding>,
}

impl Entries {
    /// Returns the completion queue.
    pub(crate) fn cq(&self) -> &Arc<Cq> {
        &self.cq
    }

    /// Checks whether there are no entries, as for a queue without requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes that all requests have completed, so no completion refers to the queue any more. May
    /// sleep.
    pub(crate) fn drained(&self) {
        let mut kept = self.cq.kept.lock();
        kept.retain(|queue| !Arc::ptr_eq(queue, &self.queue));
    }

    /// Notes that the queue pair of these requests could not be destroyed.
    pub(crate) fn stuck(&self) {
        self.cq.stuck.store(true, Relaxed);
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        self.cq.free.fetch_add(self.count, Release);
    }
}

#[pinned_drop]
impl PinnedDrop for Cq {
    fn drop(self: Pin<&mut Self>) {
        let cq = self.as_raw();
        let quiet = self.quiet.load(Relaxed);
        if self.stuck.load(Relaxed) {
            // SAFETY: `cq` is valid, and quiet if `quiet` is set, by the type invariants. Nothing
            // frees it from here on, and nobody makes it loud again.
            unsafe {
                rdma_bindings::rdma_helper_silence_cq(cq, quiet);
                rdma_bindings::rdma_helper_disown(self.device.as_raw(), &raw mut (*cq).res);
            }
        } else {
            // SAFETY: `cq` is freed only here by the type invariant, and quiet if that is set. Each
            // queue pair that completes to it holds a reference, so all of them are gone.
            unsafe { rdma_bindings::rdma_helper_free_cq(cq, quiet) };
        }
    }
}

/// How many completions to reap at most in one go. There may be others who wait for theirs.
const BUDGET: u32 = 64;

/// As many as there are.
const ALL: i32 = -1;

/// How long softirq is given to get done.
const A_MOMENT: Delta = Delta::from_millis(1);

impl Cq {
    /// Permits to [reap](Cq::reap) repeatedly. Returns [`None`] if as many tasks as CPUs already
    /// do, or if somebody listens. Does not sleep.
    pub(crate) fn poll(&self) -> Option<Polling<'_>> {
        let before = self.pollers.fetch_add(1, Relaxed);
        let polling = Polling(self);
        let may = before < nr_cpu_ids() && (self.quiet.load(Relaxed) || self.reap());
        may.then_some(polling)
    }

    /// Makes [progress](Self::progress), unless somebody listens: then it returns `false`, as
    /// completions are softirq's. Any context.
    fn reap(&self) -> bool {
        if self.listeners.load(Relaxed) > 0 {
            return false;
        }
        self.progress();
        true
    }

    /// Calls the callbacks of what has completed, unless somebody else does or listens. Any context.
    pub fn progress(&self) {
        if self.listeners.load(Relaxed) == 0 && !self.reaping.xchg(true, Full) {
            // Full: either this sees the listener, or the listener waits for `reaping`.
            if self.listeners.load(Relaxed) == 0 && self.try_quiet() {
                // SAFETY: `cq` is valid as long as `self`. Softirq doesn't poll a quiet queue.
                unsafe { rdma_bindings::rdma_helper_reap_cq(self.as_raw(), BUDGET) };
            }
            self.release();
        }
    }

    /// Has softirq call the callbacks of completions, also of earlier ones, until it is
    /// [disarmed](Self::disarm). Any context.
    pub fn arm(&self) {
        self.armed.store(true, Relaxed);
        // Full: either this sees no task that takes completions out, or that task sees `armed`.
        if !self.reaping.xchg(true, Full) {
            self.release();
        }
    }

    /// Takes [`arm`](Self::arm) back: the queue becomes quiet when a task makes
    /// [progress](Self::progress). Any context.
    pub fn disarm(&self) {
        self.armed.store(false, Relaxed);
    }

    /// Lets others take completions out. The caller must have set `reaping`.
    fn release(&self) {
        loop {
            if self.armed.load(Relaxed) || self.listeners.load(Relaxed) > 0 {
                self.make_loud();
            }
            let is_quiet = self.quiet.load(Relaxed);
            // Full: either this sees `armed`, or the task that arms sees that nobody takes completions out.
            self.reaping.xchg(false, Full);
            if !is_quiet || !self.armed.load(Relaxed) || self.reaping.xchg(true, Full) {
                return;
            }
        }
    }

    /// Sleeps until no task takes completions out, and keeps others from it until `reaping` is reset.
    fn claim(&self) {
        while self.reaping.xchg(true, Full) {
            fsleep(A_MOMENT);
        }
    }

    /// Calls the callbacks of all that has completed, and returns when they have. Sleeps while softirq is at
    /// it.
    pub(crate) fn settle(&self) {
        let _arming = self.arming.lock();
        self.claim();
        while !self.try_quiet() {
            fsleep(A_MOMENT);
        }
        // SAFETY: `cq` is there as long as `self`, and softirq doesn't poll it, as it is quiet.
        unsafe { rdma_bindings::ib_process_cq_direct(self.as_raw(), ALL) };
        self.release();
    }

    /// Has softirq call the callbacks of completions until the result is dropped, also of earlier
    /// completions. May sleep, but not for long.
    pub(crate) fn listen(&self) -> Listening<'_> {
        self.add_listener();
        Listening(self)
    }

    /// Adds a listener, so that softirq calls the callbacks of completions, also of earlier ones. May
    /// sleep, but not for long.
    pub fn add_listener(&self) {
        let _arming = self.arming.lock();
        // Full: either the task that reaps sees this, or `claim()` waits for it.
        self.listeners.fetch_add(1, Full);
        self.claim();
        self.release();
    }

    /// Removes a listener that was [added](Self::add_listener). May sleep, but not for long.
    ///
    /// If softirq is at it, the queue becomes quiet when a task makes [progress](Self::progress).
    pub fn remove_listener(&self) {
        let _arming = self.arming.lock();
        if self.listeners.fetch_sub(1, Full) == 1 && !self.reaping.xchg(true, Full) {
            self.try_quiet();
            self.release();
        }
    }

    /// Arms the queue, if it is quiet. The caller must have set `reaping`.
    fn make_loud(&self) {
        if self.quiet.xchg(false, Full) {
            // SAFETY: `cq` is there as long as `self`, and was quiet.
            unsafe { rdma_bindings::rdma_helper_listen_cq(self.as_raw()) };
        }
    }

    /// Makes the queue quiet, and returns whether it is; not if softirq is at it just now. The caller
    /// must have set `reaping`.
    fn try_quiet(&self) -> bool {
        if self.quiet.load(Relaxed) {
            return true;
        }
        // SAFETY: `cq` is there as long as `self`.
        let quiet = unsafe { rdma_bindings::rdma_helper_quiet_cq(self.as_raw()) };
        // INVARIANT: It is disabled, as the helper says, and the caller has set `reaping`.
        self.quiet.store(quiet, Relaxed);
        quiet
    }
}

/// A listener of a completion queue. Dropping it may sleep, but not for long.
#[must_use = "nobody listens any more once it is dropped"]
pub(crate) struct Listening<'a>(&'a Cq);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.remove_listener();
    }
}

/// Somebody who looks for completions again and again. Given up when dropped, in any context.
pub(crate) struct Polling<'a>(&'a Cq);

impl Polling<'_> {
    /// Calls the callbacks of completed requests, see [`Cq::reap`].
    pub(crate) fn reap(&self) -> bool {
        self.0.reap()
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.pollers.fetch_sub(1, Relaxed);
    }
}
