// SPDX-License-Identifier: GPL-2.0

//! Keeping allocations from waiting for I/O; and who mustn't wait for memory at all.
//!
//! The task that runs this.

use core::ptr;
use kernel::types::NotThreadSafe;

/// While it lives, no allocation of this task starts I/O to get memory, whatever its flags say:
/// storage may register memory on the way of the very write that would have to finish first.
///
/// # Examples
///
/// ```ignore
/// fn run(this: Arc<Self>) {
///     // Whoever waits for this may be writing memory back.
///     let _noio = NoIo::enter();
///     this.refill();
/// }
/// ```
pub struct NoIo {
    flags: u32,
    _task: NotThreadSafe,
}

impl NoIo {
    /// Enters the scope. Scopes may be nested. Any context: a task that was interrupted gets its flags back
    /// before it goes on.
    pub fn enter() -> Self {
        Self {
            // SAFETY: Only changes flags of the current task; undone in drop, on the same task.
            flags: unsafe { kfi_bindings::kfi_helper_noio_save() },
            _task: NotThreadSafe,
        }
    }

    /// Returns whether this task is in such a scope. Process context.
    pub fn is_entered() -> bool {
        // SAFETY: Only reads flags of the current task.
        unsafe { kfi_bindings::kfi_helper_in_noio() }
    }
}

/// Returns whether this task is just freeing memory, by writing it back for instance, and so can't wait for any.
/// Process context.
pub(crate) fn frees_memory() -> bool {
    // SAFETY: Only reads flags of the current task.
    unsafe { kfi_bindings::kfi_helper_frees_memory() }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: `flags` came from the matching save on this task.
        unsafe { kfi_bindings::kfi_helper_noio_restore(self.flags) };
    }
}

/// A number that no other task has as long as this one is there; not 0. In a task's context.
pub(crate) fn current() -> usize {
    ptr::from_ref(&**kernel::current!()).addr()
}
