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
