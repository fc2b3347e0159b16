// SPDX-License-Identifier: GPL-2.0

//! The module's parameters, which are defined in C (`rust/helpers/verbs.c`).

/// Checks whether the weaker fence is selected.
pub(crate) fn weak_fence() -> bool {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_verbs_helper_weak_fence() }
}

/// Returns the maximum number of pages in a domain's pool.
pub(crate) fn pool_pages() -> u32 {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_verbs_helper_pool_pages() }
}

/// Returns the seconds after which idle regions are freed, or 0 for never.
pub(crate) fn pool_idle() -> u32 {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_verbs_helper_pool_idle() }
}

/// Returns the time limit of a work request, in seconds.
pub(crate) fn wr_timeout() -> u32 {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_verbs_helper_wr_timeout() }
}
