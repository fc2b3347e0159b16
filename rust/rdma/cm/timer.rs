// SPDX-License-Identifier: GPL-2.0

//! Something to be done later unless it is called off.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h), `struct
//! delayed_work`
//!
//! The kernel crate's delayed work can't be called off.
//!
//! MERGED cm/patience.rs
//! How long to wait for a peer that doesn't seem to be there.
//!
//! The fabric has no bound of its own: a device repeats a request as often as it was told, which is
//! for ever on some, and waits for ever for a peer that has no receive request.

use kernel::{
    bindings,
    container_of,
    error::to_result,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    types::Opaque, //
};

use super::id::without_io;

/// The workqueue of the time limits of connections. It has a rescuer, since storage gets on only when a
/// connection with a peer that is gone has been given up. To be dropped when there is no connection any
/// more, which sleeps.
pub struct TimerWorkqueue(());

impl TimerWorkqueue {
    /// Allocates the workqueue. [`ENOMEM`] without memory for that. May sleep.
    ///
    /// # Safety
    ///
    /// To be called once, before any connection is made.
    pub unsafe fn new() -> Result<Self> {
        // SAFETY: There is no workqueue and no alarm yet, as this function demands.
        to_result(unsafe { rdma_bindings::rdma_helper_alarms_init() })?;
        Ok(Self(()))
    }
}

impl Drop for TimerWorkqueue {
    fn drop(&mut self) {
        // SAFETY: The workqueue was allocated, and each alarm has been called off with its connection.
        unsafe { rdma_bindings::rdma_helper_alarms_exit() };
    }
}

/// An alarm. To be called off before what it is part of goes.
///
/// # Invariants
///
/// `work` is initialized, with the callback below.
#[pin_data(PinnedDrop)]
pub(super) struct Timer {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    callback: unsafe fn(*const Timer),
}

// SAFETY: Work can be queued and called off by any task.
unsafe impl Send for Timer {}

// SAFETY: Work does its own locking.
unsafe impl Sync for Timer {}

impl Timer {
    /// An alarm that calls `callback`, in process context, where no allocation starts I/O.
    ///
    /// # Safety
    ///
    /// `callback` must be sound to call with a pointer to this, as long as this is there.
    pub(super) unsafe fn new(callback: unsafe fn(*const Timer)) -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: This initializes it.
            work <- Opaque::ffi_init(|slot: *mut bindings::delayed_work| {
                // SAFETY: The slot is memory for work.
                unsafe { rdma_bindings::rdma_helper_init_alarm(slot.cast(), Some(Self::expired)) }
            }),
            callback,
        })
    }

    /// Sets it, to callback in so many milliseconds, and not when it was set for before. Any context.
    pub(super) fn set(&self, ms: u32) {
        // SAFETY: By the type invariant the work is initialized; it is called off before it goes. The
        // workqueue is there as long as there are connections.
        unsafe { rdma_bindings::rdma_helper_set_alarm(self.work.get().cast(), ms) };
    }

    /// Calls it off. Sleeps until it doesn't callback any more, if it does.
    pub(super) fn cancel(&self) {
        // SAFETY: By the type invariant the work is initialized.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }

    /// The work's callback.
    ///
    /// # Safety
    ///
    /// `work` must be the member of the work of an alarm that is there.
    unsafe extern "C" fn expired(work: *mut bindings::work_struct) {
        let work = work.cast::<Opaque<bindings::delayed_work>>();
        // SAFETY: It is the first member of the work of an alarm.
        let timer: *const Self = unsafe { container_of!(work, Self, work) };
        // SAFETY: The alarm is there until it has been called off, which waits for this.
        without_io(|| unsafe { ((*timer).callback)(timer) });
    }
}

#[pinned_drop]
impl PinnedDrop for Timer {
    fn drop(self: Pin<&mut Self>) {
        self.cancel();
    }
}

/// How often to look until it is over.
const CHECKS: u32 = 4;

/// Looks at a queue from time to time, whether its requests get on.
pub(super) struct StallTimer {
    /// How long requests may be under way without one of them ending, in milliseconds; 0 is for ever.
    limit: u32,
    /// How many had ended at the last look.
    ended: Atomic<usize>,
    /// How many looks in a row have found none that had.
    idle: Atomic<u32>,
}

impl StallTimer {
    /// StallTimer for so many milliseconds; 0 is for ever.
    pub(super) const fn new(limit: u32) -> Self {
        Self {
            limit,
            ended: Atomic::new(0),
            idle: Atomic::new(0),
        }
    }

    /// When to look again, in milliseconds; [`None`] if that is of no use. No look is of use that comes
    /// sooner.
    pub(super) fn interval(&self) -> Option<u32> {
        (self.limit > 0).then(|| (self.limit / CHECKS).max(1))
    }

    /// Looks whether it is over: `in_flight` requests are, and so many have `ended` so far. By one task
    /// at a time.
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

#[kernel::macros::kunit_tests(rdma_cm_patience)]
mod tests {
    use super::*;

    #[test]
    fn ends_where_nothing_progress() {
        let patience = StallTimer::new(1000);
        assert_eq!(patience.interval(), Some(250));
        // Nothing is under way, however long.
        for _ in 0..20 {
            assert!(!patience.has_stalled(0, 0));
        }
        // Something gets on.
        for ended in 1..20 {
            assert!(!patience.has_stalled(3, ended));
        }
        // No longer: it is over a whole limit after the first look that has found that.
        for _ in 0..CHECKS {
            assert!(!patience.has_stalled(3, 19));
        }
        assert!(patience.has_stalled(3, 19));
        // What gets on in between begins anew.
        assert!(!patience.has_stalled(3, 20));
        assert!(!patience.has_stalled(3, 20));
    }

    #[test]
    fn for_ever() {
        assert_eq!(StallTimer::new(0).interval(), None);
        assert_eq!(StallTimer::new(1).interval(), Some(1));
    }
}
