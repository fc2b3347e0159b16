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

/// Returns the controller whose work item is `work`.
///
/// # Safety
///
/// `work` is at `offset` in a controller that exists while `'a` lasts.
unsafe fn of<'a, T: Transport>(work: *mut work_struct, offset: usize) -> &'a Controller<T> {
    // SAFETY: The caller promises that the result is a controller.
    unsafe { Controller::of(work.byte_sub(offset).cast()) }
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
    unsafe { of::<T>(work, offset_of!(b::nvme_ctrl, reset_work)) }.reset();
}

/// Takes the connections of a controller down that lost one. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn error<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe { of::<T>(work, offset!(T, error)) }.disconnect_and_retry();
}

/// Connects a controller again. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn reconnect<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe { of::<T>(work, offset!(T, reconnect.work)) }.reconnect();
}

/// Ends the requests of queues that lost their connection. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn broken<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    unsafe { of::<T>(work, offset!(T, broken)) }.stop_broken();
}

/// Ends all requests of a controller that nobody wants to connect. Sleeps.
///
/// # Safety
///
/// The workqueue calls this with the work item of a controller.
unsafe extern "C" fn watch<T: Transport>(work: *mut work_struct) {
    // SAFETY: The work item is that of a controller, which waits for it before it goes.
    let controller = unsafe { of::<T>(work, offset!(T, watch.work)) };
    if controller.cancellation().is_cancelled() {
        controller.queues.iter().for_each(|queue| queue.stop());
    }
    // SAFETY: The work is initialised. Setup cancels it, itself included.
    unsafe { b::nvme_helper_queue_watch(controller.works()) };
}
