// SPDX-License-Identifier: GPL-2.0

//! Errors that return the values of the failed call.

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use kernel::{
    error::Error,
    fmt,
    prelude::*, //
};

/// Reports that memory can't be registered like that, for which no call of C is made. Any context.
pub(super) fn unfit(why: &'static CStr) -> Errno {
    Refusal::new(Errno::EINVAL, why).report();
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

    /// The device won't let go of the memory, which is leaked.
    pub(super) fn leaked(errno: Errno, memory: B) -> Self {
        super::call::leaked("memory of a region", errno);
        core::mem::forget(memory);
        Self {
            errno,
            memory: None,
        }
    }

    /// The memory, which no peer can reach; `None` with `ENOTRECOVERABLE`, when the device won't
    /// let go of it, so that it has been leaked.
    pub fn into_inner(self) -> Option<B> {
        self.memory
    }
}

/// Buffers of which none was registered, and why.
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

    /// Which was refused first, if it was for one of them.
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// The buffers, in their order, which no peer can reach. Those that the device won't let go of
    /// (`ENOTRECOVERABLE`) have been leaked.
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

    /// Gives the object, if it is still open, another type.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> CloseError<U> {
        CloseError::new(self.errno, self.open.map(map))
    }

    /// The object, if it is still open; then the error is `EBUSY` or `EOPBADSTATE`, and closing it
    /// may be tried again.
    pub fn into_inner(self) -> Option<T> {
        self.open
    }
}

/// What was refused, and why. Nothing has been done with it.
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

    /// What was refused.
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
    /// It may still get one.
    pub(super) fn pending(errno: Errno, endpoint: T) -> Self {
        Self {
            errno,
            data: KVec::new(),
            connecting: Some(endpoint),
        }
    }

    /// There won't be one; a peer that has rejected has sent this with it.
    pub(super) fn failed(errno: Errno, data: KVec<u8>) -> Self {
        Self {
            errno,
            data,
            connecting: None,
        }
    }

    /// What the peer has sent with its rejection.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The endpoint, if it may still get its connection; otherwise it is closed.
    pub fn into_inner(self) -> Option<T> {
        self.connecting
    }
}

/// What all errors of this kind can do.
macro_rules! error {
    ($error:ident, $words:literal) => {
        impl<T> $error<T> {
            /// Why it failed.
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
            /// Drops what the error would give back.
            fn from(error: $error<T>) -> Self {
                error.errno
            }
        }

        impl<T> From<$error<T>> for Error {
            /// Drops what the error would give back.
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
