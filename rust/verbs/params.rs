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

/// Is the weaker fence asked for?
pub(crate) fn weak_fence() -> bool {
    value!(weak_fence) != 0
}

/// The budget of a domain's pool.
pub(crate) fn pool_pages() -> u32 {
    value!(pool_pages)
}

/// After how many seconds idle regions are given back; 0 for never.
pub(crate) fn pool_idle() -> u32 {
    value!(pool_idle)
}

/// How long a work request may take, in seconds.
pub(crate) fn wr_timeout() -> u32 {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_verbs_helper_wr_timeout() }
}
