// SPDX-License-Identifier: GPL-2.0

//! Removal callbacks of C consumers.

use super::Callback;
use kernel::ffi::c_void;

/// A C consumer's callback.
#[derive(Clone, Copy)]
pub(crate) struct OnRemoval {
    cb: unsafe extern "C" fn(*mut c_void),
    arg: *mut c_void,
}

impl OnRemoval {
    /// A callback with its argument.
    ///
    /// # Safety
    ///
    /// As `on_removal` of the C API demands: `cb` may be called with `arg` in any process context,
    /// until the callback was taken back or has been called.
    pub(crate) unsafe fn new(cb: unsafe extern "C" fn(*mut c_void), arg: *mut c_void) -> Self {
        Self { cb, arg }
    }

    /// Stands for the callback with this argument, by which it is known.
    pub(crate) fn known_by(arg: *mut c_void) -> Self {
        Self { cb: nothing, arg }
    }
}

// SAFETY: `new` demands that `cb` may be called with `arg` in any process context.
unsafe impl Send for OnRemoval {}

impl Callback for OnRemoval {
    fn call(self) {
        // SAFETY: `cb` and `arg` are what `new` was called with, which demands that it may be
        // called; or `cb` is `nothing`, which may always be.
        unsafe { (self.cb)(self.arg) };
    }

    fn is_same(&self, other: &Self) -> bool {
        self.arg == other.arg
    }
}

/// Does nothing.
///
/// # Safety
///
/// None is needed.
unsafe extern "C" fn nothing(_arg: *mut c_void) {}
