// SPDX-License-Identifier: GPL-2.0

//! How those inside a gate are counted.
//!
//! A count that costs little to enter and much to shut.
//!
//! C header: [`include/linux/percpu-refcount.h`](srctree/include/linux/percpu-refcount.h)
//!
//! A count that is small, and shut at once.
//!
//! Lock order: its lock is a leaf. It is taken with interrupts off, in any context in which a
//! spinlock may be taken, which is what "any context" means below.

use crate::support::irqlock::IrqLock;
use kernel::{
    error::to_result,
    prelude::*,
    static_lock_class,
    sync::CondVar,
    types::Opaque, //
};
use kfi_bindings::kfi_helper_users;

/// The lockdep name of the locks of all gates. A static has one address in all modules; a literal has one in
/// each, which lockdep reports as two names of one class.
pub(super) static NAME: &CStr = c"kfabric_gate";

/// A count of those inside a gate: [`PerCpu`] or [`Shared`].
///
/// # Safety
///
/// - [`enter`](Self::enter) counts somebody only while the count is open; who is counted sees what
///   happened before it was opened.
/// - [`drain`](Self::drain) returns when all who were counted have left since the last
///   [`shut`](Self::shut), and sees what they did.
/// - Dropping it shuts it and waits like that.
pub unsafe trait Users: Sized {
    /// An initialiser of a count of nobody. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(open: bool) -> impl PinInit<Self, Error>;

    /// Counts one more, if the count is open. Any context.
    fn enter(&self) -> bool;

    /// Counts one less. Any context.
    ///
    /// # Safety
    ///
    /// The caller was counted, and is no more.
    unsafe fn leave(&self);

    /// Counts nobody any more. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// The count is open. Nobody else is opening or shutting it.
    unsafe fn shut(&self);

    /// Sleeps until all who were counted have left; at once if that is so, or if nobody ever could
    /// come. For who has shut the count.
    fn drain(&self);

    /// Counts who comes. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// The count was shut and drained, or never was open. Nobody else is opening or shutting it.
    unsafe fn open(&self);
}

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

/// A count under a spinlock of its own. For what there is many of, as regions, and for what is
/// taken away as often as it is used.
#[pin_data(PinnedDrop)]
pub struct Shared {
    #[pin]
    pub(super) state: IrqLock<State>,
    /// Notified when the last one has left after the end.
    #[pin]
    left: CondVar,
}

pub(super) struct State {
    open: bool,
    pub(super) users: usize,
}

// SAFETY: Who comes is counted under the lock, and who drains it finds the count at 0 under the lock.
unsafe impl Users for Shared {
    fn new(open: bool) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            state <- IrqLock::new(State { open, users: 0 }, NAME, static_lock_class!()),
            left <- CondVar::new(NAME, static_lock_class!()),
        }? Error)
    }

    fn enter(&self) -> bool {
        self.state.with(|state| {
            if state.open {
                state.users += 1;
            }
            state.open
        })
    }

    unsafe fn leave(&self) {
        self.state.with(|state| {
            state.users -= 1;
            // Under the lock: who waits may then let it go.
            if state.users == 0 && !state.open {
                self.left.notify_all();
            }
        });
    }

    unsafe fn shut(&self) {
        self.state.with(|state| state.open = false);
    }

    fn drain(&self) {
        self.state.with(|state| {
            while state.users > 0 {
                self.left.wait(state);
            }
        });
    }

    unsafe fn open(&self) {
        self.state.with(|state| state.open = true);
    }
}

#[pinned_drop]
impl PinnedDrop for Shared {
    /// Sleeps until all who were counted have left.
    fn drop(self: Pin<&mut Self>) {
        self.state.with(|state| state.open = false);
        self.drain();
    }
}
