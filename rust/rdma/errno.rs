// SPDX-License-Identifier: GPL-2.0

//! Error codes that not every kernel version has as constants.
//!
//! This is the only place in the crate that differs between kernel versions.

use kernel::prelude::*;

/// Network is down.
#[inline]
pub(crate) fn enetdown() -> Error {
    #[cfg(kernel_7_3)]
    {
        kernel::error::code::ENETDOWN
    }
    #[cfg(not(kernel_7_3))]
    {
        Error::from_errno(-100)
    }
}

/// Not connected.
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

/// Operation canceled.
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

/// Connection reset by peer.
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

/// Connection refused.
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

/// Operation not supported.
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

/// Address already in use.
#[inline]
pub(crate) fn eaddrinuse() -> Error {
    Error::from_errno(-98)
}

/// Cannot assign requested address.
#[inline]
pub(crate) fn eaddrnotavail() -> Error {
    Error::from_errno(-99)
}
