// SPDX-License-Identifier: GPL-2.0

//! Which version of the API this is.

/// The version of the API, 1.7, as `KFI_VERSION` packs it.
pub const API_VERSION: u32 =
    (kfi_bindings::KFI_MAJOR_VERSION << 16) | kfi_bindings::KFI_MINOR_VERSION;
