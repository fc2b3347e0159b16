// SPDX-License-Identifier: GPL-2.0

//! Error codes that not every kernel version has as constants.

use crate::prelude::*;

/// Returns the error for an errno constant of [`kernel::bindings`]. Any context.
#[inline]
pub(crate) fn errno(number: u32) -> Error {
    c_int::try_from(number).map_or(EINVAL, |number| Error::from_errno(-number))
}
