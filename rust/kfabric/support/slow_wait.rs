// SPDX-License-Identifier: GPL-2.0

//! Waits that the log explains if they take long.

use core::ptr::NonNull;
use kernel::str::{
    CStr,
    CStrExt, //
};

/// A wait until a module or a device can go. If it takes longer than the parameter `slow_wait`, the open objects and
/// their owners are logged once.
pub struct SlowWait(Option<NonNull<kfi_bindings::kfi_helper_slow_wait>>);

impl SlowWait {
    /// Begins a wait, which the dropping of the result ends. `what` says what takes long. May sleep, as the drop.
    pub fn begin(what: &'static CStr) -> Self {
        // SAFETY: `what` lives forever.
        let wait = unsafe { kfi_bindings::kfi_helper_slow_wait_begin(what.as_char_ptr()) };
        Self(NonNull::new(wait))
    }
}

impl Drop for SlowWait {
    fn drop(&mut self) {
        if let Some(wait) = self.0 {
            // SAFETY: The wait comes from `begin`, and ends once.
            unsafe { kfi_bindings::kfi_helper_slow_wait_end(wait.as_ptr()) };
        }
    }
}

/// A close that is under way. If it takes longer than `slow_wait`, the core logs the open objects once.
///
/// # Invariants
///
/// The pointer is null, or the slot that this close has taken.
pub(crate) struct CloseTimer(*mut kfi_bindings::kfi_helper_close);

impl CloseTimer {
    /// Begins a close. Dropping the result ends it. Any context.
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        // INVARIANT: The function returns null or the slot. SAFETY: It has no requirements.
        Self(unsafe { kfi_bindings::kfi_helper_close_begin() })
    }
}

impl Drop for CloseTimer {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: The close has the slot by the invariant, and ends once.
        unsafe { kfi_bindings::kfi_helper_close_end(self.0) };
    }
}

/// The periodic check of closes. Dropping it stops the check. The core must be able to list objects meanwhile.
pub(crate) struct CloseWatch(());

impl CloseWatch {
    /// Starts the check. Any context.
    pub(crate) fn new() -> Self {
        // SAFETY: The work item is a static of this module, which drops this before it goes.
        unsafe { kfi_bindings::kfi_helper_closes_init() };
        Self(())
    }
}

impl Drop for CloseWatch {
    /// Sleeps while the check logs objects.
    fn drop(&mut self) {
        // SAFETY: The function has no requirements.
        unsafe { kfi_bindings::kfi_helper_closes_exit() };
    }
}
