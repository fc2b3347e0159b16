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
