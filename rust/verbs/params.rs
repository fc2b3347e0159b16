// SPDX-License-Identifier: GPL-2.0

//! The module's parameters. Reading one differs between kernel versions.

use crate::module_parameters as parameters;

#[cfg(kernel_7_3)]
macro_rules! value {
    ($name:ident) => {
        parameters::$name.value()
    };
}

#[cfg(not(kernel_7_3))]
macro_rules! value {
    ($name:ident) => {
        *parameters::$name.value()
    };
}

/// Checks whether the weaker fence is selected.
pub(crate) fn weak_fence() -> bool {
    value!(weak_fence) != 0
}

/// Returns the maximum number of pages in a domain's pool.
pub(crate) fn pool_pages() -> u32 {
    value!(pool_pages)
}

/// Returns the seconds after which idle regions are freed, or 0 for never.
pub(crate) fn pool_idle() -> u32 {
    value!(pool_idle)
}

/// Returns the time limit of a work request, in seconds.
pub(crate) fn wr_timeout() -> u32 {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_verbs_helper_wr_timeout() }
}
