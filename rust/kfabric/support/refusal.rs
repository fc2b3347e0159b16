// SPDX-License-Identifier: GPL-2.0

//! Why a call was refused.

use crate::support::errno::Errno;
use kernel::{
    alloc::AllocError,
    error::Error,
    str::{
        CStr,
        CStrExt, //
    }, //
};

/// A refusal: the documented error number, and what a person needs to see why.
///
/// Callers get the number; the rest goes to the tracepoint `kfi:kfi_refused` when the call
/// returns, so that a refusal can be explained without changing the caller.
///
/// # Examples
///
/// ```ignore
/// let refusal = Refusal::new(Errno::EINVAL, c"segment of length 0");
/// // Which one it is, and what it says instead.
/// return Err(refusal.at(index).value(0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    errno: Errno,
    why: &'static CStr,
    index: Option<usize>,
    value: u64,
}

impl Refusal {
    /// Of a pointer that must not be null.
    pub(crate) const NULL: Self = Self::new(Errno::EINVAL, c"an argument is NULL");

    /// A refusal with its reason in words.
    pub const fn new(errno: Errno, why: &'static CStr) -> Self {
        Self {
            errno,
            why,
            index: None,
            value: 0,
        }
    }

    /// Names the offending segment.
    pub const fn at(self, index: usize) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }

    /// Names the offending value.
    pub const fn value(self, value: u64) -> Self {
        Self { value, ..self }
    }

    /// The same reason with another error number.
    pub const fn with_errno(self, errno: Errno) -> Self {
        Self { errno, ..self }
    }

    /// The error number that the caller gets.
    pub const fn errno(&self) -> Errno {
        self.errno
    }

    /// The reason in words.
    pub const fn why(&self) -> &'static CStr {
        self.why
    }

    /// The offending segment, where one is to blame.
    pub const fn index(&self) -> Option<usize> {
        self.index
    }

    /// Fires the tracepoint `kfi:kfi_refused` and gives the C return value. Any context.
    ///
    /// To be called once, where the call of C returns. The core does so for all calls of its own;
    /// what remains are extensions of providers.
    pub fn report(self) -> kernel::ffi::c_int {
        let index = self.index.map_or(u64::MAX, crate::support::num::widen);
        // SAFETY: `why` is a NUL-terminated string that lives forever.
        unsafe {
            kfi_bindings::kfi_helper_trace_refused(
                self.errno.to_c(),
                self.why.as_char_ptr(),
                index,
                self.value,
            )
        };
        self.errno.to_c()
    }
}

/// Refuses any flags, where none are known.
pub(crate) fn no_flags(flags: u64) -> Result<(), Refusal> {
    if flags == 0 {
        Ok(())
    } else {
        Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(flags))
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::new(errno, c"see the error number")
    }
}

impl From<AllocError> for Refusal {
    fn from(_: AllocError) -> Self {
        Self::new(Errno::ENOMEM, c"out of memory")
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        refusal.errno.into()
    }
}
