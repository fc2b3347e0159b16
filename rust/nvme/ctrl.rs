// SPDX-License-Identifier: GPL-2.0

//! nvme-core's controller, and the work items of this crate that belong to it.

use crate::prelude::*;
use kernel::{
    bindings::delayed_work,
    device::Device,
    fmt,
    time::msecs_to_jiffies, //
};

/// No particular CPU, for a work item (`WORK_CPU_UNBOUND`).
const ANY_CPU: c_int = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;

/// A work item that this crate queues. The functions are in [`work`](crate::work).
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Error,
    Reconnect { seconds: u32 },
    Broken,
    Watch,
}

/// A controller as nvme-core has it, with its work items.
///
/// # Invariants
///
/// Both pointers are those of one controller. It is initialised and exists while this value is used.
#[derive(Clone, Copy)]
pub(crate) struct Ctrl {
    raw: *mut b::nvme_ctrl,
    works: *mut b::nvme_helper_works,
}

impl Ctrl {
    /// Returns the handle of a controller.
    ///
    /// # Safety
    ///
    /// Both pointers must be those of one controller, which exists and is initialised while the
    /// value is used.
    pub(crate) unsafe fn new(raw: *mut b::nvme_ctrl, works: *mut b::nvme_helper_works) -> Self {
        // INVARIANT: The caller promises both.
        Self { raw, works }
    }

    /// Returns the controller of nvme-core.
    pub(crate) fn raw(&self) -> *mut b::nvme_ctrl {
        self.raw
    }

    /// Returns the work items.
    pub(crate) fn works(&self) -> *mut b::nvme_helper_works {
        self.works
    }

    /// Returns the controller's device, for the log.
    pub(crate) fn device(&self) -> &Device {
        // SAFETY: The device is part of the controller, which is initialised by the invariant.
        unsafe { Device::from_raw((*self.raw).device) }
    }

    /// Returns the state (`enum nvme_ctrl_state`). Any context.
    pub(crate) fn state(&self) -> b::nvme_ctrl_state {
        // SAFETY: The controller is initialised by the invariant. The read is volatile, since other
        // tasks write the field (`nvme_ctrl_state()`).
        unsafe { (&raw const (*self.raw).state).read_volatile() }
    }

    /// Checks whether the controller is live. Any context.
    pub(crate) fn is_live(&self) -> bool {
        self.state() == b::nvme_ctrl_state_NVME_CTRL_LIVE
    }

    /// Changes the state, if nvme-core allows that. Any context.
    pub(crate) fn change_state(&self, state: b::nvme_ctrl_state) -> bool {
        // SAFETY: The controller is initialised by the invariant.
        unsafe { b::nvme_change_ctrl_state(self.raw, state) }
    }

    /// Begins recovery if the controller is live. Returns true if it was live. Any context.
    pub(crate) fn recover(&self, why: fmt::Arguments<'_>) -> bool {
        let is_first = self.change_state(b::nvme_ctrl_state_NVME_CTRL_RESETTING);
        if is_first {
            // First, since deletion only waits for work that is queued, and the log may be slow.
            self.queue(Work::Error);
            dev_warn!(self.device(), "{}, starting error recovery\n", why);
        }
        is_first
    }

    /// Handles a queue whose connection broke: by recovery, or, if that can't begin now, by ending
    /// the requests of the queue. Any context.
    pub(crate) fn queue_broken(&self, qid: u16, error: Error) {
        if !self.recover(fmt!("queue {qid}: connection lost ({error:?})")) {
            self.queue(Work::Broken);
        }
    }

    /// Makes the current task the creator of the controller, or unsets the creator. The task must
    /// unset it before the task exits.
    pub(crate) fn set_creator(&self, is_creating: bool) {
        // SAFETY: The works exist by the invariant.
        unsafe { b::nvme_helper_set_creator(self.works, is_creating) };
    }

    fn work(&self, item: Work) -> *mut delayed_work {
        // SAFETY: The works exist by the invariant. Only addresses are taken.
        unsafe {
            match item {
                Work::Error => &raw mut (*self.works).error,
                Work::Reconnect { .. } => &raw mut (*self.works).reconnect,
                Work::Broken => &raw mut (*self.works).broken,
                Work::Watch => &raw mut (*self.works).watch,
            }
        }
    }

    /// Queues a work item, unless it is queued. Any context.
    pub(crate) fn queue(&self, item: Work) {
        let milliseconds = match item {
            Work::Error | Work::Broken => 0,
            Work::Reconnect { seconds } => seconds.saturating_mul(1000),
            Work::Watch => 100,
        };
        let delay = msecs_to_jiffies(milliseconds);
        // SAFETY: The item is initialised by the invariant. nvme-core makes its queues before it
        // registers a transport.
        unsafe {
            // Reconnecting waits for requests that `Broken` ends, so their queue runs several items.
            let queue = match item {
                Work::Error => b::nvme_reset_wq,
                _ => b::nvme_wq,
            };
            bindings::queue_delayed_work_on(ANY_CPU, queue, self.work(item), delay);
        }
    }

    /// Cancels a work item, and waits for it if it runs. Sleeps.
    pub(crate) fn cancel(&self, item: Work) {
        // SAFETY: The item is initialised by the invariant.
        unsafe { bindings::cancel_delayed_work_sync(self.work(item)) };
    }

    /// Waits for recovery, and cancels the next attempt to connect. Sleeps.
    pub(crate) fn end_recovery(&self) {
        // SAFETY: The item is initialised by the invariant.
        unsafe { bindings::flush_delayed_work(self.work(Work::Error)) };
        self.cancel(Work::Reconnect { seconds: 0 });
    }

    /// Checks whether the controller is being deleted, or the task that creates it was killed. Any
    /// context.
    pub(crate) fn is_cancelled(&self) -> bool {
        // The states of a controller that will not be live again have the highest numbers.
        self.state() >= b::nvme_ctrl_state_NVME_CTRL_DELETING
            // SAFETY: The works exist by the invariant.
            || unsafe { b::nvme_helper_is_killed(self.works) }
    }
}
