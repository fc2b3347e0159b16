// SPDX-License-Identifier: GPL-2.0

//! A count that costs little to enter and much to shut.
//!
//! C header: [`include/linux/percpu-refcount.h`](srctree/include/linux/percpu-refcount.h)

use super::users::Users;
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};
use kfi_bindings::kfi_helper_users;

/// A count by a `percpu_ref`: each CPU counts on its own, so that those who come and go at once
/// don't meet in one cache line. For what is used often and taken away seldom, as all that a domain
/// has on its device.
///
/// Shutting starts an RCU grace period, and draining waits for it: milliseconds. It takes 8 bytes
/// for each CPU that there may be, and some 150 besides.
///
/// "Any context" includes interrupt handlers; not those of interrupts that can't be masked.
///
/// # Invariants
///
/// `raw` is initialised, and until dropped where it is.
#[pin_data(PinnedDrop)]
pub struct PerCpu {
    #[pin]
    raw: Opaque<kfi_helper_users>,
}

// SAFETY: A `struct kfi_helper_users` may be used and destroyed from any thread.
unsafe impl Send for PerCpu {}
// SAFETY: Those who come and go may do so at once; opening and shutting is for one at a time by the
// requirements of the trait's functions.
unsafe impl Sync for PerCpu {}

// SAFETY: `percpu_ref_tryget_live()` fails once it was killed, with the barrier that the helper has
// added otherwise. The completion for which `drain` waits fires when as many have been put as were
// got, and the one of its owner, which killing puts; `drop` waits for it too.
unsafe impl Users for PerCpu {
    fn new(open: bool) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // INVARIANT: Initialised when this succeeds.
            raw <- Opaque::try_ffi_init(move |raw: *mut kfi_helper_users| {
                // SAFETY: `raw` is memory for it that stays where it is.
                to_result(unsafe { kfi_bindings::kfi_helper_users_init(raw, open) })
            }),
        }? Error)
    }

    #[inline]
    fn enter(&self) -> bool {
        // SAFETY: `raw` is initialised by the invariant.
        unsafe { kfi_bindings::kfi_helper_users_enter(self.raw.get()) }
    }

    #[inline]
    unsafe fn leave(&self) {
        // SAFETY: `raw` is initialised by the invariant; the caller was counted.
        unsafe { kfi_bindings::kfi_helper_users_leave(self.raw.get()) };
    }

    #[inline]
    unsafe fn shut(&self) {
        // SAFETY: `raw` is initialised by the invariant. It is live, and nobody else kills it, by
        // the requirements of this function.
        unsafe { kfi_bindings::kfi_helper_users_shut(self.raw.get()) };
    }

    #[inline]
    fn drain(&self) {
        // SAFETY: `raw` is initialised by the invariant.
        unsafe { kfi_bindings::kfi_helper_users_drain(self.raw.get()) };
    }

    #[inline]
    unsafe fn open(&self) {
        // SAFETY: `raw` is initialised by the invariant. It has come to 0, and nobody else revives
        // it, by the requirements of this function.
        unsafe { kfi_bindings::kfi_helper_users_open(self.raw.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for PerCpu {
    /// Sleeps until all who were counted have left; for a grace period, if it wasn't shut before.
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `raw` is initialised by the invariant, and nobody uses it after its drop.
        unsafe { kfi_bindings::kfi_helper_users_exit(self.raw.get()) };
    }
}
