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

/// A close of an object. If it takes longer than the parameter `slow_wait`, the open objects and their owners are logged
/// once.
pub(crate) struct SlowClose(*mut kfi_bindings::kfi_helper_close);

impl SlowClose {
    /// Begins a close, which the dropping of the result ends. Any context.
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        // SAFETY: The function has no requirements.
        Self(unsafe { kfi_bindings::kfi_helper_close_begin() })
    }
}

impl Drop for SlowClose {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: The pointer comes from `begin`, and the close ends once.
        unsafe { kfi_bindings::kfi_helper_close_end(self.0) };
    }
}

/// The look at closes, until dropped. The core must be able to list objects.
pub(crate) struct CloseWatch(());

impl CloseWatch {
    /// Begins to look at closes. Any context.
    pub(crate) fn new() -> Self {
        // SAFETY: The work item is a static of this module, which drops this before it goes.
        unsafe { kfi_bindings::kfi_helper_closes_init() };
        Self(())
    }
}

impl Drop for CloseWatch {
    /// Sleeps while objects are logged.
    fn drop(&mut self) {
        // SAFETY: The function has no requirements.
        unsafe { kfi_bindings::kfi_helper_closes_exit() };
    }
}
