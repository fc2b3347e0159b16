// SPDX-License-Identifier: GPL-2.0

//! Errors that return the values of the failed call.

use super::*;
use kernel::fmt;

/// Reports that memory doesn't fit a registration, before its slot is called. `call` names the function or the
/// slot. Any context.
pub(super) fn unfit(call: &CStr, why: &'static CStr) -> Errno {
    Refusal::new(Errno::EINVAL, why).report(call);
    Errno::EINVAL
}

/// Memory that was not registered, and why.
///
/// The reason in words is in the tracepoint `kfi:kfi_refused`.
pub struct RegisterError<B> {
    errno: Errno,
    memory: Option<B>,
}

impl<B> RegisterError<B> {
    pub(super) fn new(errno: Errno, memory: B) -> Self {
        let memory = Some(memory);
        Self { errno, memory }
    }

    /// Leaks the memory, because the device may still access it.
    pub(super) fn leaked(errno: Errno, memory: B) -> Self {
        leaked("memory of a region", errno);
        core::mem::forget(memory);
        Self {
            errno,
            memory: None,
        }
    }

    /// Returns the memory, which no peer can reach.
    ///
    /// `None` with `ENOTRECOVERABLE`: the device may still access the memory, which is leaked.
    pub fn into_inner(self) -> Option<B> {
        self.memory
    }
}

/// Buffers that were not registered, and why.
pub struct RegisterManyError<B> {
    errno: Errno,
    index: Option<usize>,
    buffers: KVVec<B>,
}

impl<B> RegisterManyError<B> {
    pub(super) fn new(errno: Errno, index: Option<usize>, buffers: KVVec<B>) -> Self {
        Self {
            errno,
            index,
            buffers,
        }
    }

    /// Returns the index of the first buffer that was refused, if the error is that of a buffer.
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// Returns the buffers in their order. No peer can reach them.
    ///
    /// Buffers that the device may still access (`ENOTRECOVERABLE`) are leaked.
    pub fn into_inner(self) -> KVVec<B> {
        self.buffers
    }
}

/// An object that was not closed, and why.
pub struct CloseError<T> {
    errno: Errno,
    open: Option<T>,
}

impl<T> CloseError<T> {
    pub(super) fn new(errno: Errno, open: Option<T>) -> Self {
        Self { errno, open }
    }

    /// Converts the object, if it is still open.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> CloseError<U> {
        CloseError::new(self.errno, self.open.map(map))
    }

    /// Returns the object if it is still open.
    ///
    /// The error is `EBUSY` or `EOPBADSTATE` then, and the caller may try again to close it.
    pub fn into_inner(self) -> Option<T> {
        self.open
    }
}

/// A value that a call refused, and why. The call had no effect.
///
/// The reason in words is in the tracepoint `kfi:kfi_refused`.
pub struct Refused<T> {
    errno: Errno,
    what: T,
}

impl<T> Refused<T> {
    pub(super) fn new(errno: Errno, what: T) -> Self {
        Self { errno, what }
    }

    /// Returns the refused value.
    pub fn into_inner(self) -> T {
        self.what
    }
}

/// An endpoint that has no connection, and why.
pub struct ConnectError<T> {
    errno: Errno,
    data: KVec<u8>,
    connecting: Option<T>,
}

impl<T> ConnectError<T> {
    /// Creates the error of an endpoint that may still be connected.
    pub(super) fn pending(errno: Errno, endpoint: T) -> Self {
        Self {
            errno,
            data: KVec::new(),
            connecting: Some(endpoint),
        }
    }

    /// Creates the error of an endpoint that can't be connected. A peer that rejected sent `data`.
    pub(super) fn failed(errno: Errno, data: KVec<u8>) -> Self {
        Self {
            errno,
            data,
            connecting: None,
        }
    }

    /// Returns the data that the peer sent with its rejection.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the endpoint if it may still be connected. Otherwise it is closed.
    pub fn into_inner(self) -> Option<T> {
        self.connecting
    }
}

/// Implements the methods that all errors here have.
macro_rules! error {
    ($error:ident, $words:literal) => {
        impl<T> $error<T> {
            /// Returns the cause.
            pub fn errno(&self) -> Errno {
                self.errno
            }
        }

        impl<T> fmt::Debug for $error<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl<T> fmt::Display for $error<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($words)?;
                fmt::Display::fmt(&self.errno, f)
            }
        }

        impl<T> From<$error<T>> for Errno {
            /// Drops the value in the error.
            fn from(error: $error<T>) -> Self {
                error.errno
            }
        }

        impl<T> From<$error<T>> for Error {
            /// Drops the value in the error.
            fn from(error: $error<T>) -> Self {
                error.errno.into()
            }
        }
    };
}

error!(RegisterError, "not registered: ");
error!(RegisterManyError, "not registered: ");
error!(CloseError, "not closed: ");
error!(Refused, "refused: ");
error!(ConnectError, "not connected: ");

/// Logs that the provider refused to close an object, which stays open with all that it uses.
pub(super) fn leaked(what: &str, errno: Errno) {
    pr_warn!("{what} can't be closed and is leaked: {errno}\n");
}
