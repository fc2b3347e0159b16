// SPDX-License-Identifier: GPL-2.0

//! The module's parameters. Reading one differs between kernel versions.

/// Is the weaker fence asked for?
#[cfg(kernel_7_3)]
pub(crate) fn weak_fence() -> bool {
    crate::module_parameters::weak_fence.value() != 0
}

/// Is the weaker fence asked for?
#[cfg(not(kernel_7_3))]
pub(crate) fn weak_fence() -> bool {
    *crate::module_parameters::weak_fence.value() != 0
}

/// How long a work request may take, in seconds.
pub(crate) fn wr_timeout() -> u32 {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_verbs_helper_wr_timeout() }
}
