// SPDX-License-Identifier: GPL-2.0

//! Keeping what a device may use at any time, since it would not let go of it.

use core::mem::ManuallyDrop;
use kernel::prelude::*;

/// Keeps a value for good, on purpose: never drops it, and has kmemleak not report what it owns.
/// Without memory for that kmemleak may report it. May sleep.
pub(crate) fn leak<T>(value: T) {
    if let Ok(kept) = KBox::new(ManuallyDrop::new(value), GFP_KERNEL) {
        // SAFETY: A box is an allocation of its own. What it leads to is found from there.
        unsafe { rdma_bindings::rdma_helper_not_leak(KBox::into_raw(kept).cast()) };
    }
}
