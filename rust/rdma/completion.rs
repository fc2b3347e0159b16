// SPDX-License-Identifier: GPL-2.0

//! Completions that are waited for with a bound.
//!
//! C header: [`include/linux/completion.h`](srctree/include/linux/completion.h)
//!
//! The kernel crate's [`Completion`](kernel::sync::Completion) has no bounded wait.

use crate::prelude::*;
use kernel::time::msecs_to_jiffies;

/// How long one nap of a longer wait is, in milliseconds.
///
/// A waiter checks after each nap whether it still has something to wait for.
pub(crate) const NAP: u32 = 1000;

/// Something that happens once, and that one task waits for.
///
/// # Invariants
///
/// The completion is initialized.
#[pin_data]
pub(crate) struct Done {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: A completion can be used by any task.
unsafe impl Send for Done {}

// SAFETY: A completion does its own locking.
unsafe impl Sync for Done {}

impl Done {
    /// Initializes it: it has not happened.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: This initializes it.
            inner <- Opaque::ffi_init(|slot| {
                // SAFETY: The slot is memory for a completion.
                unsafe { bindings::init_completion(slot) }
            }),
        })
    }

    /// Completes it. Any context. `self` is not used after a waiter has seen this.
    pub(crate) fn complete(&self) {
        // SAFETY: `inner` is initialized by the type invariant.
        unsafe { bindings::complete_all(self.inner.get()) };
    }

    /// Has it happen once more. The [`complete`](Self::complete) before has returned, and nobody waits. Any context.
    pub(crate) fn renew(&self) {
        // SAFETY: `inner` is initialized by the type invariant, and nobody uses it meanwhile, as the caller
        // promises.
        unsafe { bindings::init_completion(self.inner.get()) };
    }

    /// Waits for it, at most one [`NAP`], and returns whether it has happened. Sleeps,
    /// uninterruptibly.
    pub(crate) fn nap(&self) -> bool {
        self.wait_for(NAP)
    }

    /// Waits for it, at most `ms` milliseconds, and returns whether it has happened. Sleeps,
    /// uninterruptibly.
    pub(crate) fn wait_for(&self, ms: u32) -> bool {
        // SAFETY: `inner` is initialized by the type invariant.
        unsafe { bindings::wait_for_completion_timeout(self.inner.get(), msecs_to_jiffies(ms)) > 0 }
    }

    /// Waits for it. Sleeps until then, or until the current task is killed.
    ///
    /// # Errors
    ///
    /// - `EINTR`: the task was killed.
    pub(crate) fn wait_killable(&self) -> Result {
        // SAFETY: `inner` is initialized by the type invariant.
        match unsafe { bindings::wait_for_completion_killable(self.inner.get()) } {
            0 => Ok(()),
            _ => Err(EINTR),
        }
    }

    /// Waits for it, however long that takes. Sleeps, uninterruptibly.
    pub(crate) fn wait(&self) {
        // SAFETY: `inner` is initialized by the type invariant.
        unsafe { bindings::wait_for_completion(self.inner.get()) };
    }
}
