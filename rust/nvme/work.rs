// SPDX-License-Identifier: GPL-2.0

//! The work items of a controller.
//!
//! | work item | runs | does |
//! |---|---|---|
//! | reset | when nvme-core resets the controller | takes the connections down and up |
//! | error | when a live controller lost a connection | takes the connections down |
//! | reconnect | some seconds after that | takes the connections up |
//! | broken | when a connecting controller lost a connection | ends the requests of that queue |
//! | watch | ten times a second while a controller connects | ends all requests if nobody wants it |

use crate::{
    controller::Controller,
    transport::Transport, //
};
use core::mem::offset_of;
use kernel::bindings::work_struct;
use nvme_bindings as b;

/// Returns the functions of the work items.
pub(crate) fn functions<T: Transport>() -> b::nvme_helper_work_functions {
    b::nvme_helper_work_functions {
        reset: Some(reset::<T>),
        error: Some(error::<T>),
        reconnect: Some(reconnect::<T>),
        broken: Some(broken::<T>),
        watch: Some(watch::<T>),
    }
}

/// Calls a function for the controller whose work item is `work`. What it allocates does not wait for
/// I/O: memory may be short because requests wait for this work. Sleeps.
///
/// # Safety
///
/// `work` is at `offset` in a controller that exists during the call.
unsafe fn run<T: Transport>(
    work: *mut work_struct,
    offset: usize,
    function: impl FnOnce(&Controller<T>),
) {
    // SAFETY: The scope ends below, in the same task. The caller promises that the pointer is that of
    // a controller.
    unsafe {
        let flags = b::nvme_helper_noio_save();
        function(Controller::of(work.byte_sub(offset).cast()));
        b::nvme_helper_noio_restore(flags);
    }
}

/// The offset of a field in the works of a controller.
macro_rules! offset {
    ($t:ident, $($field:tt)+) => {
        offset_of!(Controller<$t>, works) + offset_of!(b::nvme_helper_works, $($field)+)
    };
}

/// Resets a controller. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn reset<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe {
        run::<T>(
            work,
            offset_of!(b::nvme_ctrl, reset_work),
            Controller::reset,
        )
    };
}

/// Takes the connections of a controller down that lost one. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn error<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe { run::<T>(work, offset!(T, error), Controller::disconnect_and_retry) };
}

/// Connects a controller again. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn reconnect<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe { run::<T>(work, offset!(T, reconnect.work), Controller::reconnect) };
}

/// Ends the requests of queues that lost their connection. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn broken<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe { run::<T>(work, offset!(T, broken), Controller::stop_broken) };
}

/// Ends all requests of a controller that nobody wants to connect. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn watch<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe { run::<T>(work, offset!(T, watch.work), Controller::watch) };
}
