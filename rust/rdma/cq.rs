// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_cq`

mod reap;

use kernel::{
    error::from_err_ptr,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

use core::ptr::NonNull;

use crate::{
    device::Device,
    outstanding::Outstanding,
    wc::CqId, //
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
/// let cq = Cq::alloc_for_callbacks(pd.device(), entries)?;
/// ```
#[pin_data]
pub struct Cq {
    // Dropped before `kept`.
    raw: RawCq,
    /// How many listen. Whoever changes that, or calls callbacks, has the lock.
    #[pin]
    listeners: Mutex<u32>,
    /// How many look for completions again and again.
    pollers: Atomic<u32>,
    /// How many entries nobody has reserved.
    free: Atomic<u32>,
    /// What completions lead to.
    #[pin]
    kept: Mutex<KVec<Arc<Outstanding>>>,
}

impl Cq {
    /// Allocates a completion queue with `entries` entries, to which nobody listens. May sleep.
    pub fn alloc(device: &ARef<Device>, entries: u32) -> Result<Arc<Self>> {
        let raw = RawCq::alloc(device, entries)?;
        Arc::pin_init(
            pin_init!(Self {
                raw,
                listeners <- new_mutex!(0),
                pollers: Atomic::new(0),
                free: Atomic::new(entries),
                kept <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Allocates a completion queue with `entries` entries, to which softirq listens from the
    /// start: callbacks of requests are called there as soon as they have completed. May sleep.
    pub fn alloc_for_callbacks(device: &ARef<Device>, entries: u32) -> Result<Arc<Self>> {
        let this = Self::alloc(device, entries)?;
        // Nobody stops.
        core::mem::forget(this.listen());
        Ok(this)
    }

    /// Reserves so many entries, for requests of `queue`. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSPC` if there are not so many left.
    /// - `ENOMEM`
    pub(crate) fn reserve(
        self: &Arc<Self>,
        entries: u32,
        queue: &Arc<Outstanding>,
    ) -> Result<Entries> {
        let mut free = self.free.load(Relaxed);
        loop {
            let left = free.checked_sub(entries).ok_or(ENOSPC)?;
            match self.free.cmpxchg(free, left, Relaxed) {
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

    /// Which one it is, as long as it is there.
    pub fn id(&self) -> CqId {
        // SAFETY: It is there as long as `self`.
        unsafe { CqId::of(self.as_raw()) }
    }

    /// The raw pointer.
    pub(crate) fn as_raw(&self) -> *mut rdma_bindings::ib_cq {
        self.raw.cq.as_ptr()
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
    /// The completion queue.
    pub(crate) fn cq(&self) -> &Cq {
        &self.cq
    }

    /// Whether there are none, for a queue that can't have requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All requests have completed, so that no completion leads to the queue any more. May sleep.
    pub(crate) fn drained(&self) {
        let mut kept = self.cq.kept.lock();
        kept.retain(|queue| !Arc::ptr_eq(queue, &self.queue));
    }

    /// The queue pair whose requests these are for could not be destroyed.
    pub(crate) fn stuck(&self) {
        self.cq.raw.stuck.store(true, Relaxed);
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        self.cq.free.fetch_add(self.count, Relaxed);
    }
}

/// The C object.
///
/// # Invariants
///
/// - `cq` is a completion queue of `device` that is freed only here.
/// - While `quiet` it is disabled for the RDMA core, which calls no callbacks then.
struct RawCq {
    cq: NonNull<rdma_bindings::ib_cq>,
    device: ARef<Device>,
    quiet: Atomic<bool>,
    /// A queue pair that completes here could not be destroyed.
    stuck: Atomic<bool>,
}

// SAFETY: A completion queue is not tied to a task.
unsafe impl Send for RawCq {}

// SAFETY: The C side does its own locking.
unsafe impl Sync for RawCq {}

impl RawCq {
    fn alloc(device: &ARef<Device>, entries: u32) -> Result<Self> {
        // SAFETY: `device` is held.
        let cq = unsafe { rdma_bindings::rdma_helper_alloc_cq(device.as_raw(), entries) };
        // INVARIANT: Just allocated on the device, and quiet, as the helper says.
        Ok(Self {
            cq: NonNull::new(from_err_ptr(cq)?).ok_or(ENOMEM)?,
            device: device.clone(),
            quiet: Atomic::new(true),
            stuck: Atomic::new(false),
        })
    }
}

impl Drop for RawCq {
    fn drop(&mut self) {
        let cq = self.cq.as_ptr();
        let quiet = self.quiet.load(Relaxed);
        if self.stuck.load(Relaxed) {
            // SAFETY: By the type invariant `cq` is there, and quiet if that says so; nothing frees
            // it from here on, and nobody makes it loud again.
            unsafe {
                rdma_bindings::rdma_helper_silence_cq(cq, quiet);
                rdma_bindings::rdma_helper_disown(self.device.as_raw(), &raw mut (*cq).res);
            }
        } else {
            // SAFETY: By the type invariant `cq` is freed only here, and quiet if that says so. All
            // queue pairs that complete to it, each of which has a reference, are gone.
            unsafe { rdma_bindings::rdma_helper_free_cq(cq, quiet) };
        }
    }
}
