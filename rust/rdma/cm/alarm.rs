// SPDX-License-Identifier: GPL-2.0

//! Something to be done later unless it is called off.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h), `struct
//! delayed_work`
//!
//! The kernel crate's delayed work can't be called off.

use kernel::{
    bindings,
    container_of,
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::noio::without_io;

/// The workqueue of the time limits of connections. It has a rescuer, since storage gets on only when a
/// connection with a peer that is gone has been given up. To be dropped when there is no connection any
/// more, which sleeps.
pub struct Alarms(());

impl Alarms {
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

impl Drop for Alarms {
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
pub(super) struct Alarm {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    ring: unsafe fn(*const Alarm),
}

// SAFETY: Work can be queued and called off by any task.
unsafe impl Send for Alarm {}

// SAFETY: Work does its own locking.
unsafe impl Sync for Alarm {}

impl Alarm {
    /// An alarm that calls `ring`, in process context, where no allocation starts I/O.
    ///
    /// # Safety
    ///
    /// `ring` must be sound to call with a pointer to this, as long as this is there.
    pub(super) unsafe fn new(ring: unsafe fn(*const Alarm)) -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: This initializes it.
            work <- Opaque::ffi_init(|slot: *mut bindings::delayed_work| {
                // SAFETY: The slot is memory for work.
                unsafe { rdma_bindings::rdma_helper_init_alarm(slot.cast(), Some(Self::callback)) }
            }),
            ring,
        })
    }

    /// Sets it, to ring in so many milliseconds, and not when it was set for before. Any context.
    pub(super) fn set(&self, ms: u32) {
        // SAFETY: By the type invariant the work is initialized; it is called off before it goes. The
        // workqueue is there as long as there are connections.
        unsafe { rdma_bindings::rdma_helper_set_alarm(self.work.get().cast(), ms) };
    }

    /// Calls it off. Sleeps until it doesn't ring any more, if it does.
    pub(super) fn call_off(&self) {
        // SAFETY: By the type invariant the work is initialized.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }

    /// The work's callback.
    ///
    /// # Safety
    ///
    /// `work` must be the member of the work of an alarm that is there.
    unsafe extern "C" fn callback(work: *mut bindings::work_struct) {
        let work = work.cast::<Opaque<bindings::delayed_work>>();
        // SAFETY: It is the first member of the work of an alarm.
        let alarm: *const Self = unsafe { container_of!(work, Self, work) };
        // SAFETY: The alarm is there until it has been called off, which waits for this.
        without_io(|| unsafe { ((*alarm).ring)(alarm) });
    }
}

#[pinned_drop]
impl PinnedDrop for Alarm {
    fn drop(self: Pin<&mut Self>) {
        self.call_off();
    }
}
