// SPDX-License-Identifier: GPL-2.0

//! The work items of a controller.
//!
//! | work item | runs | does |
//! |---|---|---|
//! | reset | when nvme-core resets the controller | disconnects it and connects it again |
//! | error | when a live controller lost a connection | disconnects it |
//! | reconnect | `reconnect_delay` seconds after that | connects it again |
//! | broken | when a connecting controller lost a connection | ends the requests of that queue |
//! | watch | ten times a second while a controller connects | ends all requests after a cancellation |

use crate::{
    controller::Controller,
    prelude::*,
    transport::Transport, //
};
use core::mem::offset_of;
use kernel::bindings::work_struct;

/// Initialises the work items of a new controller.
pub(crate) fn init<T: Transport>(controller: &Controller<T>) {
    // SAFETY: Both are fields of the controller, whose work items nobody uses yet.
    unsafe {
        b::nvme_helper_init_works(
            controller.raw(),
            controller.works.get(),
            Some(reset::<T>),
            Some(error::<T>),
            Some(reconnect::<T>),
            Some(broken::<T>),
            Some(watch::<T>),
        );
    }
}

/// Defines the function of a work item: its name, its offset in the controller, and the method that it
/// calls. Allocations do not wait for I/O: memory may be short because requests wait for the item.
macro_rules! work_function {
    ($name:ident, $offset:expr, $does:ident) => {
        /// Calls the method for the controller of a work item. Sleeps.
        ///
        /// # Safety
        ///
        /// The workqueue calls this with the work item of a controller.
        unsafe extern "C" fn $name<T: Transport>(work: *mut work_struct) {
            let _noio = NoIo::enter();
            // SAFETY: The work item is at this offset in a controller, which waits for it before it
            // is freed.
            unsafe { Controller::<T>::of(work.byte_sub($offset).cast()) }.$does();
        }
    };
}

/// The offset of a field in the works of a controller.
macro_rules! offset {
    ($($field:tt)+) => {
        offset_of!(Controller<T>, works) + offset_of!(b::nvme_helper_works, $($field)+)
    };
}

work_function!(reset, offset_of!(b::nvme_ctrl, reset_work), reset);
work_function!(error, offset!(error.work), disconnect_and_retry);
work_function!(reconnect, offset!(reconnect.work), reconnect);
work_function!(broken, offset!(broken.work), stop_broken);
work_function!(watch, offset!(watch.work), watch);
