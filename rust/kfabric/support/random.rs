// SPDX-License-Identifier: GPL-2.0

//! Random numbers, which the kernel crate doesn't have.

/// A number that nobody can guess. May be called in any context.
pub fn number() -> u64 {
    // SAFETY: It may be called at any time, and takes nothing.
    unsafe { kernel::bindings::get_random_u64() }
}
