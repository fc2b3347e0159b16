// SPDX-License-Identifier: GPL-2.0

//! Teardown of a controller, and connecting it again.
//!
//! # Order
//!
//! For the I/O queues, and after them for the admin queue:
//!
//! 1. [Stop](HostQueue::stop_all): the gate closes, so that no request is started. The
//!    connection ends, and all capsules come back. The transport ends the key of each request under
//!    way, and the request is cancelled.
//! 2. Wait until the block layer has taken back the requests that the closing gate refused, and until
//!    timeout handlers are done.
//! 3. Cancel the requests that were started, but not given to the transport.
//! 4. Free the tag set, if the controller goes.
//! 5. Free the connections.
//!
//! So the target can't reach the data of a request that has ended.
//!
//! Requests that come meanwhile fail, or wait for the next connection: nvme-core decides. In a
//! reset, requests of the admin queue wait.

use crate::{
    controller::Controller,
    ctrl::Work,
    failure::Failure,
    host_queue::HostQueue,
    prelude::*,
    transport::Transport, //
};
use core::ops::Deref;

impl<T: Transport> Controller<T> {
    /// Takes the I/O queues down. With `remove`, their tag set is freed. Sleeps.
    ///
    /// This does not quiesce them: a scan may add a namespace at any time, which unquiescing would find
    /// to be not quiesced, with a warning. The gates do the same.
    fn teardown_io(&self, remove: bool) {
        let ctrl = self.raw();
        HostQueue::stop_all(self.io().iter().map(Deref::deref));
        if self.has_io_tags.load(Relaxed) {
            let (set, _) = self.tags_of(1);
            // SAFETY: The controller has an I/O tag set. No request of it has a key.
            unsafe {
                bindings::blk_mq_wait_quiesce_done(set);
                b::nvme_sync_io_queues(ctrl);
                bindings::blk_sync_queue((*ctrl).connect_q);
                b::nvme_cancel_tagset(ctrl);
                // Firmware activation may have quiesced them.
                b::nvme_unquiesce_io_queues(ctrl);
                if remove {
                    self.has_io_tags.store(false, Relaxed);
                    b::nvme_remove_io_tag_set(ctrl);
                }
            }
        }
        self.io().iter().for_each(|queue| queue.free());
    }

    /// Takes the admin queue down. With `remove`, its tag set is freed. Unless `hold`, nvme-core may
    /// fail requests that come. Sleeps.
    fn teardown_admin(&self, remove: bool, hold: bool) {
        let ctrl = self.raw();
        let Ok(admin) = self.admin() else {
            return;
        };
        let has_tags = self.has_admin_tags.load(Relaxed);
        if has_tags {
            // SAFETY: The controller has an admin tag set and its queue.
            unsafe { b::nvme_quiesce_admin_queue(ctrl) };
        }
        admin.stop();
        if has_tags {
            let (set, _) = self.tags_of(0);
            // SAFETY: The controller has an admin tag set. No request of it has a key.
            unsafe {
                // The queue of Connect and authentication is not quiesced: see `teardown_io`.
                bindings::blk_mq_wait_quiesce_done(set);
                bindings::blk_sync_queue((*ctrl).admin_q);
                bindings::blk_sync_queue((*ctrl).fabrics_q);
                b::nvme_cancel_admin_tagset(ctrl);
                if !hold {
                    b::nvme_unquiesce_admin_queue(ctrl);
                }
                if remove {
                    self.has_admin_tags.store(false, Relaxed);
                    b::nvme_remove_admin_tag_set(ctrl);
                }
            }
        }
        // SAFETY: The controller is initialised. The work uses the connection.
        unsafe { bindings::cancel_work_sync(&raw mut (*ctrl).async_event_work) };
        admin.free();
    }

    /// Takes all connections down, without a word to the target. Sleeps.
    pub(crate) fn disconnect(&self, remove: bool) {
        self.teardown_io(remove);
        self.teardown_admin(remove, false);
        self.cancel(Work::Broken);
    }

    /// Shuts the controller down, and takes all connections down. If it does not go, requests wait for
    /// the next connection. Sleeps.
    pub(crate) fn shut_down(&self, remove: bool) {
        self.teardown_io(remove);
        if self.has_admin_tags.load(Relaxed) {
            // SAFETY: The controller has an admin queue. Without a connection the command fails.
            unsafe {
                b::nvme_quiesce_admin_queue(self.raw());
                b::nvme_disable_ctrl(self.raw(), remove);
            }
        }
        self.teardown_admin(remove, !remove);
        self.cancel(Work::Broken);
    }

    /// Takes the connections of a controller down that lost one, and has it connect again later.
    /// Sleeps.
    pub(crate) fn disconnect_and_retry(&self) {
        let ctrl = self.raw();
        if self.state() != b::nvme_ctrl_state_NVME_CTRL_RESETTING {
            // Deletion began before this work was queued. It takes the connections down, but may wait for
            // requests first.
            self.stop_all();
            return;
        }
        // SAFETY: The controller is initialised.
        unsafe {
            b::nvme_stop_keep_alive(ctrl);
            bindings::flush_work(&raw mut (*ctrl).async_event_work);
        }
        self.disconnect(false);
        // It fails if somebody deletes the controller. While the state is RESETTING, nvme-core holds back the
        // commands that nvme_auth_stop() waits for.
        let connects = self.change_state(b::nvme_ctrl_state_NVME_CTRL_CONNECTING);
        // SAFETY: The controller is initialised.
        unsafe { b::nvme_helper_auth_stop(ctrl) };
        if connects {
            self.retry_or_delete(0);
        }
    }

    /// Has a controller connect again after a delay, unless it was tried too often or the target said
    /// that this is in vain. Sleeps.
    fn retry_or_delete(&self, status: c_int) {
        let ctrl = self.raw();
        if self.state() != b::nvme_ctrl_state_NVME_CTRL_CONNECTING {
            return;
        }
        // SAFETY: The controller is initialised, and so are its works.
        unsafe {
            if b::nvmf_should_reconnect(ctrl, status) {
                let delay = (*(*ctrl).opts).reconnect_delay;
                dev_info!(self.device(), "connecting again in {} seconds\n", delay);
                self.queue(Work::Reconnect { seconds: delay });
            } else {
                dev_info!(self.device(), "no further attempt to connect\n");
                b::nvme_delete_ctrl(ctrl);
            }
        }
    }

    /// Counts an attempt to connect again. Returns the number.
    fn count_attempt(&self) -> c_int {
        // SAFETY: Only reset and reconnect write the number, and they do not run at the same time.
        unsafe {
            (*self.raw()).nr_reconnects += 1;
            (*self.raw()).nr_reconnects
        }
    }

    /// Connects a controller again. Sleeps.
    pub(crate) fn reconnect(&self) {
        let attempt = self.count_attempt();
        match self.setup(false) {
            Ok(()) => {
                dev_info!(self.device(), "connected again at attempt {}\n", attempt);
                // SAFETY: The controller is initialised.
                unsafe { b::nvme_helper_count_reconnects(self.raw()) };
            }
            Err(failure) => self.failed(attempt, failure),
        }
    }

    fn failed(&self, attempt: c_int, failure: Failure) {
        let number = failure.number();
        dev_info!(
            self.device(),
            "attempt {} to connect failed: {}\n",
            attempt,
            number
        );
        self.retry_or_delete(number);
    }

    /// Resets a controller: shuts it down and connects it again. Sleeps.
    pub(crate) fn reset(&self) {
        // SAFETY: The controller is initialised.
        unsafe { b::nvme_stop_ctrl(self.raw()) };
        self.shut_down(false);
        if !self.change_state(b::nvme_ctrl_state_NVME_CTRL_CONNECTING) {
            // The task that deletes the controller waits for commands of its scan.
            if self.has_admin_tags.load(Relaxed) {
                // SAFETY: The controller has an admin queue.
                unsafe { b::nvme_unquiesce_admin_queue(self.raw()) };
            }
            return;
        }
        if let Err(failure) = self.setup(false) {
            self.failed(self.count_attempt(), failure);
        }
    }
}
