// SPDX-License-Identifier: GPL-2.0

//! Modules that go, and what they have left behind.

use crate::{
    api::registry,
    consumer,
    prelude::*,
    support::{
        module::{
            wait_until_returned,
            Owner, //
        },
        slow_wait::SlowWait,
        table::declared_in_c,
        workqueue, //
    }, //
};
use kernel::{
    bindings,
    error::to_result, //
};

/// Being told of modules that go, until dropped.
pub(crate) struct Watch(());

impl Watch {
    /// Begins. May sleep.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: The notifier is a static of this module, which drops this before it goes.
        to_result(unsafe { kfi_bindings::kfi_helper_watch_modules() })?;
        Ok(Self(()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { kfi_bindings::kfi_helper_unwatch_modules() };
    }
}

/// Takes all that is a module's from those who would call it. Sleeps until nobody does.
///
/// To be called when the module gives nothing out any more, and before its code is freed.
pub(crate) fn gone(owner: Owner) {
    let _noio = NoIo::enter();
    let _wait = SlowWait::begin(c"unloading a module");
    registry::module_gone(owner);
    consumer::module_gone(owner);
    // Regions that the module has left to be closed call the module, which may leave others then.
    if let Some(queue) = workqueue::CLOSINGS.get() {
        wait_until_returned(owner, || queue.flush());
    }
    // Providers' objects go with the last that is done for them.
    if let Some(queue) = workqueue::FALLS.get() {
        queue.flush();
    }
}

/// Takes everything of a module that goes from its callers. Sleeps as [`gone`] does.
///
/// # Safety
///
/// Called by the notifier, with a module that has done all that it was going to do.
#[no_mangle]
unsafe extern "C" fn kfi_core_module_gone(module: *mut bindings::module) {
    // SAFETY: The notifier passes a valid module.
    if let Some(owner) = unsafe { Owner::from_raw(module) } {
        gone(owner);
    }
}

declared_in_c!(kfi_core_module_gone);
