// SPDX-License-Identifier: GPL-2.0

//! Leaking of values that a device may use at any time.

use crate::prelude::*;
use core::mem::ManuallyDrop;

/// Keeps a value forever: never drops it, and hides its memory from kmemleak. Without memory for
/// that kmemleak may report it. May sleep.
pub(crate) fn leak<T>(value: T) {
    if let Ok(kept) = KBox::new(ManuallyDrop::new(value), GFP_KERNEL) {
        // SAFETY: The box is an allocation. kmemleak finds the memory that `value` owns from there.
        unsafe { rdma_bindings::rdma_helper_not_leak(KBox::into_raw(kept).cast()) };
    }
}
