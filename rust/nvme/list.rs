// SPDX-License-Identifier: GPL-2.0

//! The list of created controllers. The module's exit deletes all of them.

use crate::prelude::*;

/// A controller that has been created.
struct Created(*mut b::nvme_ctrl);

// SAFETY: The controller is in the list until it is freed, and each use holds the list's lock.
unsafe impl Send for Created {}

kernel::sync::global_lock! {
    // SAFETY: `init` initialises the lock before anything else uses it.
    unsafe(uninit) static CREATED: Mutex<KVec<Created>> = KVec::new();
}

/// Initialises the list. May sleep.
///
/// # Safety
///
/// Must be called once, before any other function of this file.
pub(crate) unsafe fn init() {
    // SAFETY: The caller promises that nothing has used the lock yet.
    unsafe { CREATED.init() };
}

/// Begins to delete each controller of the list. May sleep.
pub(crate) fn delete_all() {
    for created in CREATED.lock().iter() {
        // SAFETY: A controller stays in the list until it is freed. This only queues work.
        unsafe { b::nvme_delete_ctrl(created.0) };
    }
}

/// Frees the memory of the list, which is empty. May sleep.
pub(crate) fn free() {
    *CREATED.lock() = KVec::new();
}

/// Removes a controller from the list. May sleep.
pub(crate) fn remove(ctrl: *mut b::nvme_ctrl) {
    CREATED.lock().retain(|created| created.0 != ctrl);
}

/// Reserves space for one controller. May sleep.
pub(crate) fn reserve() -> Result {
    Ok(CREATED.lock().reserve(1, GFP_KERNEL)?)
}

/// Adds a controller, for which there is reserved space: nvme-core creates one at a time. May
/// sleep.
pub(crate) fn add(ctrl: *mut b::nvme_ctrl) {
    if CREATED.lock().push_within_capacity(Created(ctrl)).is_err() {
        pr_err!("no space for a controller\n");
    }
}

/// Checks whether a controller of the list has the same options. May sleep.
///
/// # Safety
///
/// `options` must be valid.
pub(crate) unsafe fn has(options: *mut b::nvmf_ctrl_options) -> bool {
    // SAFETY: A controller stays in the list until it is freed, and has options as long. The caller
    // has valid options.
    let same = |created: &Created| unsafe { b::nvmf_ip_options_match(created.0, options) };
    CREATED.lock().iter().any(same)
}
