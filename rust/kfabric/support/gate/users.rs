// SPDX-License-Identifier: GPL-2.0

//! The counts of the users inside a gate.
//!
//! [`PerCpu`] costs little to enter and much to shut. [`Shared`] is small and shut at once.
//!
//! C header: [`include/linux/percpu-refcount.h`](srctree/include/linux/percpu-refcount.h)

use crate::prelude::*;
use kernel::{
    error::to_result,
    sync::atomic::{
        Acquire,
        Full, //
    },
    types::Opaque, //
};
use kfi_bindings::kfi_helper_users;

/// The lockdep name of the locks of all gates. A static has one address in all modules; a literal has one in
/// each, which lockdep reports as two names of one class.
pub(super) static NAME: &CStr = c"kfabric_gate";

/// A count of the users inside a gate: [`PerCpu`] or [`Shared`].
///
/// # Safety
///
/// - [`enter`](Self::enter) counts a user only while the count is open. The user sees all writes
///   before the count was opened.
/// - [`drain`](Self::drain) returns when all users have left that were counted before the last
///   [`shut`](Self::shut). The caller sees all their writes.
/// - Dropping the count shuts it and waits like `drain`.
pub unsafe trait Users: Sized {
    /// Returns an initialiser of a count of no users. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    fn new(open: bool) -> impl PinInit<Self, Error>;

    /// Counts a user, if the count is open. Any context.
    fn enter(&self) -> bool;

    /// Uncounts a user. Any context.
    ///
    /// # Safety
    ///
    /// The caller was counted, and no longer relies on it.
    unsafe fn leave(&self);

    /// Closes the count to new users. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// The count is open. No other task opens or shuts it at the same time.
    unsafe fn shut(&self);

    /// Sleeps until all counted users have left. Returns at once if there is none. The caller has
    /// shut the count, or it was never open.
    fn drain(&self);

    /// Opens the count. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// The count was shut and drained, or was never open. No other task opens or shuts it at the
    /// same time.
    unsafe fn open(&self);
}

/// A count by a `percpu_ref`. Each CPU counts on its own, so that users on different CPUs share no
/// cache line. It suits objects that are used often and taken away seldom, as a device of a domain.
///
/// Shutting starts an RCU grace period, and draining waits for it: milliseconds. A count takes 8
/// bytes for each possible CPU, and about 150 besides.
///
/// "Any context" includes interrupt handlers, but not NMI handlers.
///
/// # Invariants
///
/// `raw` is initialised and stays where it is until it is dropped.
#[pin_data(PinnedDrop)]
pub struct PerCpu {
    #[pin]
    raw: Opaque<kfi_helper_users>,
}

// SAFETY: A `struct kfi_helper_users` may be used and destroyed from any thread.
unsafe impl Send for PerCpu {}
// SAFETY: `percpu_ref` may be got and put by several threads at once. The callers of `shut` and
// `open` promise that no other task calls these at the same time.
unsafe impl Sync for PerCpu {}

// SAFETY: `percpu_ref_tryget_live()` fails once the ref was killed; the helper adds the barrier for
// the success case. The completion that `drain` waits for fires when all references are put, the
// owner's included, which killing puts. `drop` waits for it, too.
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
        // SAFETY: `raw` is initialised by the invariant. The caller promises that the count is
        // open, so the ref is live, and that no other task kills it.
        unsafe { kfi_bindings::kfi_helper_users_shut(self.raw.get()) };
    }

    #[inline]
    fn drain(&self) {
        // SAFETY: `raw` is initialised by the invariant.
        unsafe { kfi_bindings::kfi_helper_users_drain(self.raw.get()) };
    }

    #[inline]
    unsafe fn open(&self) {
        // SAFETY: `raw` is initialised by the invariant. The caller promises that the count was
        // drained, so the ref is at 0, and that no other task revives it.
        unsafe { kfi_bindings::kfi_helper_users_open(self.raw.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for PerCpu {
    /// Sleeps until all who were counted have left; for a grace period, if it wasn't shut before.
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `raw` is initialised by the invariant, and `drop` is its last use.
        unsafe { kfi_bindings::kfi_helper_users_exit(self.raw.get()) };
    }
}

/// The count is shut. The other bits of a [`Shared`] count the users.
const SHUT: usize = 1;
/// One user.
const USER: usize = 2;

/// A count in one word. It suits numerous objects like regions, and objects that are used only a few
/// times before they are taken away.
#[pin_data(PinnedDrop)]
pub struct Shared {
    pub(super) users: Atomic<usize>,
}

impl Shared {
    /// Returns the number of users. Any context.
    pub(super) fn count(&self) -> usize {
        self.users.load(Acquire) / USER
    }
}

// SAFETY: `enter` counts in full order, and takes that back if `SHUT` was set. `drain` returns when it
// has seen no user in full order.
unsafe impl Users for Shared {
    fn new(open: bool) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            users: Atomic::new(if open { 0 } else { SHUT }),
        }? Error)
    }

    #[inline]
    fn enter(&self) -> bool {
        let is_open = self.users.fetch_add(USER, Full) & SHUT == 0;
        if !is_open {
            // SAFETY: Just counted.
            unsafe { self.leave() };
        }
        is_open
    }

    #[inline]
    unsafe fn leave(&self) {
        let users = self.users.as_ptr();
        // In full order with a waiter, which looks at the count after it has begun to wait.
        if self.users.fetch_sub(USER, Full) == USER | SHUT {
            // The waiter may have freed the count.
            // SAFETY: The helper uses only the address.
            unsafe { kfi_bindings::kfi_helper_wake_left(users.cast()) };
        }
    }

    unsafe fn shut(&self) {
        self.users.fetch_add(SHUT, Full);
    }

    fn drain(&self) {
        // SAFETY: The count stays as long as `self`.
        unsafe { kfi_bindings::kfi_helper_wait_left(self.users.as_ptr().cast()) };
    }

    unsafe fn open(&self) {
        self.users.fetch_sub(SHUT, Full);
    }
}

#[pinned_drop]
impl PinnedDrop for Shared {
    /// Sleeps until all counted users have left.
    fn drop(self: Pin<&mut Self>) {
        if self.users.load(Relaxed) & SHUT == 0 {
            // SAFETY: The count is open, and nobody else uses it.
            unsafe { self.shut() };
        }
        // Without users this may be dropped in any context.
        if self.count() != 0 {
            self.drain();
        }
    }
}
