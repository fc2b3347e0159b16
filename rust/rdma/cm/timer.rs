// SPDX-License-Identifier: GPL-2.0

//! Timers of connections.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h), `struct
//! delayed_work`
//!
//! The delayed work of the kernel crate cannot be cancelled.
//!
//! The fabric itself has no time limit. Some devices retry a request forever, and wait forever for
//! a peer without receive requests.

use super::*;

/// The workqueue of the timers. It has a rescuer, because storage goes on only after a connection
/// with a lost peer has ended. The owner must drop it after the last connection, which sleeps.
pub struct TimerWorkqueue(());

impl TimerWorkqueue {
    /// Allocates the workqueue. Returns [`ENOMEM`] without memory. May sleep.
    ///
    /// # Safety
    ///
    /// Must be called once, before the first connection is created.
    pub unsafe fn new() -> Result<Self> {
        // SAFETY: This is the only call by the function's contract, so no workqueue and no timer
        // exists.
        to_result(unsafe { rdma_bindings::rdma_helper_alarms_init() })?;
        Ok(Self(()))
    }
}

impl Drop for TimerWorkqueue {
    fn drop(&mut self) {
        // SAFETY: `new()` allocated the workqueue. Every connection cancelled its timer when it was
        // dropped.
        unsafe { rdma_bindings::rdma_helper_alarms_exit() };
    }
}

/// A timer that calls a function. Dropping it cancels it.
///
/// # Invariants
///
/// `work` is initialized with the callback `expired`.
#[pin_data(PinnedDrop)]
pub(super) struct Timer {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    callback: unsafe fn(*const Timer),
}

// SAFETY: Any task may queue and cancel work.
unsafe impl Send for Timer {}

// SAFETY: The workqueue locks the work item.
unsafe impl Sync for Timer {}

impl Timer {
    /// Creates a timer that calls `callback` in process context. Allocations of the callback do not
    /// start I/O.
    ///
    /// # Safety
    ///
    /// `callback` must be sound to call with a pointer to this timer while it is valid.
    pub(super) unsafe fn new(callback: unsafe fn(*const Timer)) -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: The call initializes `work` with `expired`.
            work <- Opaque::ffi_init(|slot: *mut bindings::delayed_work| {
                // SAFETY: `slot` is valid memory for a work item.
                unsafe { rdma_bindings::rdma_helper_init_alarm(slot.cast(), Some(Self::expired)) }
            }),
            callback,
        })
    }

    /// Sets the timer to expire in `ms` milliseconds, and cancels an earlier setting. Any context.
    pub(super) fn set(&self, ms: u32) {
        // SAFETY: `work` is initialized by the type invariant, and is cancelled before it is freed.
        // The workqueue outlives all connections.
        unsafe { rdma_bindings::rdma_helper_set_alarm(self.work.get().cast(), ms) };
    }

    /// Cancels the timer. Sleeps until a running callback has returned.
    pub(super) fn cancel(&self) {
        // SAFETY: `work` is initialized by the type invariant.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }

    /// Calls the callback of a timer.
    ///
    /// # Safety
    ///
    /// `work` must be the work item of a valid [`Timer`].
    unsafe extern "C" fn expired(work: *mut bindings::work_struct) {
        let work = work.cast::<Opaque<bindings::delayed_work>>();
        // SAFETY: `work` is the first member of the delayed work in the `work` member of a `Timer`.
        let timer: *const Self = unsafe { container_of!(work, Self, work) };
        // SAFETY: `timer` is valid: `cancel()` waits for this function. `callback` accepts it by
        // the contract of `new()`.
        without_io(|| unsafe { ((*timer).callback)(timer) });
    }
}

#[pinned_drop]
impl PinnedDrop for Timer {
    fn drop(self: Pin<&mut Self>) {
        self.cancel();
    }
}

/// Number of checks within the limit.
const CHECKS: u32 = 4;

/// Checks periodically whether the requests of a queue complete.
pub(super) struct StallTimer {
    /// Maximum time without a completion while requests are in flight, in milliseconds. 0 is
    /// unlimited.
    limit: u32,
    /// Number of completions at the last check.
    ended: Atomic<usize>,
    /// Number of consecutive checks without a completion.
    idle: Atomic<u32>,
}

impl StallTimer {
    /// Creates a timer with this limit in milliseconds. 0 is unlimited.
    pub(super) const fn new(limit: u32) -> Self {
        Self {
            limit,
            ended: Atomic::new(0),
            idle: Atomic::new(0),
        }
    }

    /// Returns the time until the next check in milliseconds, or [`None`] if the limit is disabled.
    /// Earlier checks have no use.
    pub(super) fn interval(&self) -> Option<u32> {
        (self.limit > 0).then(|| (self.limit / CHECKS).max(1))
    }

    /// Checks whether the queue has stalled, with `in_flight` requests and a total of `ended`
    /// completions. Only one task may call this at a time.
    pub(super) fn has_stalled(&self, in_flight: usize, ended: usize) -> bool {
        let progress = self.ended.load(Relaxed) != ended;
        self.ended.store(ended, Relaxed);
        let idle = match progress || in_flight == 0 {
            true => 0,
            false => self.idle.load(Relaxed) + 1,
        };
        self.idle.store(idle, Relaxed);
        idle > CHECKS
    }
}

#[kernel::macros::kunit_tests(rdma_cm_stall)]
mod tests {
    use super::*;

    #[test]
    fn ends_where_nothing_progress() {
        let timer = StallTimer::new(1000);
        assert_eq!(timer.interval(), Some(250));
        // Nothing is in flight.
        for _ in 0..20 {
            assert!(!timer.has_stalled(0, 0));
        }
        // Requests complete.
        for ended in 1..20 {
            assert!(!timer.has_stalled(3, ended));
        }
        // Without completions it stalls a whole limit after the first check that finds none.
        for _ in 0..CHECKS {
            assert!(!timer.has_stalled(3, 19));
        }
        assert!(timer.has_stalled(3, 19));
        // A completion restarts the limit.
        assert!(!timer.has_stalled(3, 20));
        assert!(!timer.has_stalled(3, 20));
    }

    #[test]
    fn for_ever() {
        assert_eq!(StallTimer::new(0).interval(), None);
        assert_eq!(StallTimer::new(1).interval(), Some(1));
    }
}
