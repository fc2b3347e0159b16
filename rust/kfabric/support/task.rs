// SPDX-License-Identifier: GPL-2.0

//! The task that runs this.

use core::ptr;

/// A number that no other task has as long as this one is there; not 0. In a task's context.
pub(crate) fn current() -> usize {
    ptr::from_ref(&**kernel::current!()).addr()
}
