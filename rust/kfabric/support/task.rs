// SPDX-License-Identifier: GPL-2.0

//! The current task: its NOIO scope, and a number that identifies it.

use core::ptr;
use kernel::types::NotThreadSafe;

/// A scope in which no allocation of this task starts I/O to get memory, whatever its flags say.
/// Storage may register memory as a part of the very write that would have to finish first.
///
/// # Examples
///
/// ```ignore
/// fn run(this: Arc<Self>) {
///     // A task that waits for this may be writing memory back.
///     let _noio = NoIo::enter();
///     this.refill();
/// }
/// ```
pub struct NoIo {
    flags: u32,
    _task: NotThreadSafe,
}

impl NoIo {
    /// Enters the scope. Scopes may be nested. Any context: an interrupted task gets its flags back
    /// before it goes on.
    pub fn enter() -> Self {
        Self {
            // SAFETY: The helper changes flags of the current task only. `drop` restores them on
            // the same task: the type is not `Send`.
            flags: unsafe { kfi_bindings::kfi_helper_noio_save() },
            _task: NotThreadSafe,
        }
    }

    /// Checks whether this task is in a NOIO scope. Process context.
    pub fn is_entered() -> bool {
        // SAFETY: Only reads flags of the current task.
        unsafe { kfi_bindings::kfi_helper_in_noio() }
    }
}

/// Checks whether this task is freeing memory, for example by writing it back. It can't wait for
/// memory then. Process context.
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

/// Returns a number that no other task has while the current one exists; not 0. Process context.
pub(crate) fn current() -> usize {
    ptr::from_ref(&**kernel::current!()).addr()
}
