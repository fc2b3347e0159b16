// SPDX-License-Identifier: GPL-2.0

//! The reason why a call was refused.

use crate::support::{
    errno::Errno,
    trace::is_on, //
};
use kernel::{
    alloc::AllocError,
    error::Error,
    str::{
        CStr,
        CStrExt, //
    }, //
};
use kfi_bindings::kfi_helper_object;

/// A refusal: the documented error number, and the reason for a person.
///
/// Callers get the number. The rest goes to the tracepoint `kfi:kfi_refused` when the call returns,
/// so that a refusal can be explained without changing the caller.
///
/// # Examples
///
/// ```ignore
/// let refusal = Refusal::new(Errno::EINVAL, c"segment of length 0");
/// // The index of the segment, and its length.
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
    /// The refusal of a pointer that must not be null.
    pub(crate) const NULL: Self = Self::new(Errno::EINVAL, c"an argument is NULL");

    /// Makes a refusal with its reason in words.
    pub const fn new(errno: Errno, why: &'static CStr) -> Self {
        Self {
            errno,
            why,
            index: None,
            value: 0,
        }
    }

    /// Adds the index of the offending segment.
    pub const fn at(self, index: usize) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }

    /// Adds the offending value.
    pub const fn value(self, value: u64) -> Self {
        Self { value, ..self }
    }

    /// Replaces the error number.
    pub const fn with_errno(self, errno: Errno) -> Self {
        Self { errno, ..self }
    }

    /// Returns the error number that the caller gets.
    pub const fn errno(&self) -> Errno {
        self.errno
    }

    /// Returns the reason in words.
    pub const fn why(&self) -> &'static CStr {
        self.why
    }

    /// Returns the index of the offending segment, if there is one.
    pub const fn index(&self) -> Option<usize> {
        self.index
    }

    /// Fires the tracepoint `kfi:kfi_refused` and returns the C return value. Any context.
    ///
    /// It must be called once, where the C call returns. The core does so for all its own calls. `call` is the name of
    /// the function or slot, which has no object, or none that may be used.
    pub fn report(self, call: &CStr) -> kernel::ffi::c_int {
        self.report_of(call, c"")
    }

    /// Reports the refusal of a call by a provider, as [`report`](Self::report) does. `provider` is empty if no provider
    /// refuses. Any context.
    pub(crate) fn report_of(self, call: &CStr, provider: &CStr) -> kernel::ffi::c_int {
        let of = kfi_helper_object {
            provider: provider.as_char_ptr(),
            domain: c"".as_char_ptr(),
            ..pin_init::zeroed()
        };
        self.report_on(call, &of)
    }

    /// Reports the refusal of a call on an object, as [`report`](Self::report) does. The strings of the object are not
    /// null. Any context.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_on(self, call: &CStr, of: &kfi_helper_object) -> kernel::ffi::c_int {
        if is_on!(__tracepoint_kfi_refused) {
            let index = self.index.map_or(u64::MAX, crate::support::num::widen);
            // SAFETY: `of`, its strings, `call` and `why` are valid for the call.
            unsafe {
                kfi_bindings::kfi_helper_trace_refused(
                    of,
                    call.as_char_ptr(),
                    self.errno.to_c(),
                    self.why.as_char_ptr(),
                    index,
                    self.value,
                )
            };
        }
        self.errno.to_c()
    }
}

/// Refuses all flags, for calls that know none.
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
