// SPDX-License-Identifier: GPL-2.0

//! Error codes that not every kernel version has as constants.
//!
//! This is the only place in the crate that differs between kernel versions.

use crate::prelude::*;

/// Returns ENOTCONN.
#[inline]
pub(crate) fn enotconn() -> Error {
    #[cfg(kernel_7_3)]
    {
        kernel::error::code::ENOTCONN
    }
    #[cfg(not(kernel_7_3))]
    {
        Error::from_errno(-107)
    }
}

/// Returns ECANCELED.
#[inline]
pub(crate) fn ecanceled() -> Error {
    #[cfg(kernel_7_3)]
    {
        kernel::error::code::ECANCELED
    }
    #[cfg(not(kernel_7_3))]
    {
        Error::from_errno(-125)
    }
}

/// Returns ECONNRESET.
#[inline]
pub(crate) fn econnreset() -> Error {
    #[cfg(kernel_7_3)]
    {
        kernel::error::code::ECONNRESET
    }
    #[cfg(not(kernel_7_3))]
    {
        Error::from_errno(-104)
    }
}

/// Returns ECONNREFUSED.
#[inline]
pub(crate) fn econnrefused() -> Error {
    #[cfg(kernel_7_3)]
    {
        kernel::error::code::ECONNREFUSED
    }
    #[cfg(not(kernel_7_3))]
    {
        Error::from_errno(-111)
    }
}

/// Returns EOPNOTSUPP.
#[inline]
pub(crate) fn eopnotsupp() -> Error {
    #[cfg(kernel_7_3)]
    {
        kernel::error::code::EOPNOTSUPP
    }
    #[cfg(not(kernel_7_3))]
    {
        Error::from_errno(-95)
    }
}

/// Returns EADDRINUSE.
#[inline]
pub(crate) fn eaddrinuse() -> Error {
    Error::from_errno(-98)
}

/// Returns EADDRNOTAVAIL.
#[inline]
pub(crate) fn eaddrnotavail() -> Error {
    Error::from_errno(-99)
}
