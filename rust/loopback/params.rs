// SPDX-License-Identifier: GPL-2.0

//! The module's parameters. Reading one differs between kernel versions.

/// Most domains.
const MAX_DOMAINS: u32 = 64;

#[cfg(kernel_7_3)]
fn asked() -> u32 {
    crate::module_parameters::domains.value()
}

#[cfg(not(kernel_7_3))]
fn asked() -> u32 {
    *crate::module_parameters::domains.value()
}

/// How many domains there are.
pub(crate) fn domains() -> u32 {
    asked().clamp(1, MAX_DOMAINS)
}
