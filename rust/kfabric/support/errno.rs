// SPDX-License-Identifier: GPL-2.0

//! Error numbers of kfabric, and a text for each.
//!
//! Most are the kernel's. Those from 256 on are kfabric's own and unknown to [`kernel::error`].
//!
//! C header: [`include/kfi_errno.h`](srctree/include/kfi_errno.h)

use crate::support::num::{
    c_str,
    signed, //
};
use kernel::{
    alloc::AllocError,
    error::Error,
    fmt,
    str::CStr, //
};

/// A kfabric error number, positive as in `kfi_errno.h`.
///
/// # Invariants
///
/// The number lies between 1 and the kernel's `MAX_ERRNO`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(i32);

/// Declares the constants of [`Errno`] and their texts.
macro_rules! errnos {
    ($($name:ident: $text:literal;)*) => {
        kernel::macros::paste! {
            impl Errno {
                // INVARIANT: Every number in `kfi_errno.h` is in range; checked below.
                $(
                    #[doc = concat!($text, ".")]
                    pub const $name: Self = Self(signed(kfi_bindings::[<KFI_ $name>]));
                )*
            }

            const _: () = {
                $(assert!(Errno::$name.0 > 0 && Errno::$name.0 < 4096);)*
            };

            /// Every number of `kfi_errno.h`, as a positive number, and its text.
            const TEXTS: &[(u32, &CStr)] = &[
                (kfi_bindings::KFI_SUCCESS, c"Success"),
                $((kfi_bindings::[<KFI_ $name>], c_str(concat!($text, "\0").as_bytes())),)*
            ];
        }

        impl fmt::Debug for Errno {
            /// Writes the name, if the number is one of those in [`Errno`].
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(stringify!($name)),)*
                    Self(number) => write!(f, "Errno({number})"),
                }
            }
        }
    };
}

errnos! {
    EPERM: "Not permitted";
    ENOENT: "No such entry";
    EINTR: "Interrupted by a signal";
    EIO: "Input or output failed";
    ENXIO: "No such device or address";
    E2BIG: "Too many segments or pages";
    EBADF: "Bad descriptor";
    EAGAIN: "Nothing there now, try again";
    ENOMEM: "Out of memory";
    EACCES: "Access denied";
    EFAULT: "Memory that may not be used";
    EBUSY: "Still in use";
    EEXIST: "Exists already";
    ENODEV: "No such device, or it is gone";
    EINVAL: "Invalid argument";
    EMFILE: "Too many open objects";
    ENOSPC: "Resources of the device or domain used up";
    ERANGE: "Result out of range";
    ENAMETOOLONG: "Name too long";
    ENOSYS: "Operation not implemented by this provider";
    ENOMSG: "No message";
    ENODATA: "Nothing found that meets the request";
    EPROTO: "Protocol error";
    EOVERFLOW: "Value too large for its type";
    EMSGSIZE: "Message too long";
    ENOPROTOOPT: "Option not available";
    EPROTONOSUPPORT: "Protocol not supported";
    EOPNOTSUPP: "Not supported by this provider";
    EAFNOSUPPORT: "Address family not supported";
    EADDRINUSE: "Address in use";
    EADDRNOTAVAIL: "Address not available";
    ENETDOWN: "No active port, or network down";
    ENETUNREACH: "Network unreachable";
    ECONNABORTED: "Connection given up";
    ECONNRESET: "Connection reset by the peer";
    ENOBUFS: "No buffer space";
    EISCONN: "Connected already";
    ENOTCONN: "Not connected";
    ESHUTDOWN: "Endpoint shut down";
    ETIMEDOUT: "Timed out";
    ECONNREFUSED: "Connection refused";
    EHOSTDOWN: "Host down";
    EHOSTUNREACH: "Host unreachable";
    EALREADY: "Under way already";
    EINPROGRESS: "Started, and not done yet";
    EREMOTEIO: "Input or output failed at the peer";
    ECANCELED: "Canceled";
    ENOTRECOVERABLE: "The device won't let go of the memory, which must never be freed";
    EKEYREJECTED: "Requested key not available";
    EOTHER: "Unspecified error";
    ETOOSMALL: "Buffer too small for the result";
    EOPBADSTATE: "Not allowed in this state";
    EAVAIL: "An error entry waits to be read";
    EBADFLAGS: "Flags not supported";
    ENOEQ: "No event queue";
    EDOMAIN: "Wrong domain, or none";
    ENOCQ: "No completion queue";
    ECRC: "Checksum doesn't match";
    ETRUNC: "Data cut off";
    ENOKEY: "Key in use, or no such key";
    ENOAV: "No address vector";
    EOVERRUN: "Queue overrun";
}

impl Errno {
    /// Converts the return value of a C function that failed; one that is no error number becomes
    /// `EIO`.
    pub(crate) fn from_c(ret: kernel::ffi::c_int) -> Self {
        match ret {
            // INVARIANT: Just matched.
            -4095..=-1 => Self(-ret),
            _ => Self::EIO,
        }
    }

    /// Checks whether a pointer is an error pointer (`IS_ERR`).
    pub(crate) fn is_in<T>(pointer: *const T) -> bool {
        // The last 4095 addresses are error numbers.
        pointer.addr() > usize::MAX - 4095
    }

    /// Returns the number as C functions return it: negative.
    pub const fn to_c(self) -> kernel::ffi::c_int {
        -self.0
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Error::from_errno(errno.to_c())
    }
}

impl From<AllocError> for Errno {
    fn from(_: AllocError) -> Self {
        Errno::ENOMEM
    }
}

/// Returns the text for a number without its sign, if the number has one. Any context.
pub(super) fn known_text(errnum: u32) -> Option<&'static CStr> {
    let found = TEXTS.iter().find(|(number, _)| *number == errnum);
    found.map(|(_, text)| *text)
}

/// Returns the text for a number without its sign. Any context.
pub(super) fn text(errnum: u32) -> &'static CStr {
    known_text(errnum).unwrap_or(c"Unknown error")
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.to_c().unsigned_abs();
        match text(number).to_str() {
            Ok(text) => write!(f, "{text} ({number})"),
            Err(_) => write!(f, "error {number}"),
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_errno)]
mod tests {
    use super::*;
    use kernel::{
        prelude::*,
        str::CString, //
    };

    #[test]
    fn debug_names_it() -> Result {
        let debug = |errno: Errno| CString::try_from_fmt(fmt!("{errno:?}"));
        assert_eq!(&*debug(Errno::EAGAIN)?, c"EAGAIN");
        assert_eq!(&*debug(Errno::ETOOSMALL)?, c"ETOOSMALL");
        assert_eq!(&*debug(Errno::from_c(-4000))?, c"Errno(4000)");
        Ok(())
    }

    /// Calls `kfi_strerror()` as C does.
    fn strerror(errnum: kernel::ffi::c_int) -> &'static CStr {
        // SAFETY: Any number is allowed, and all texts are constant.
        unsafe { CStr::from_char_ptr(crate::support::strings::kfi_strerror(errnum)) }
    }

    #[test]
    fn both_signs_say_the_same() {
        assert_eq!(strerror(22), c"Invalid argument");
        assert_eq!(strerror(-22), c"Invalid argument");
        assert_eq!(strerror(0), c"Success");
        assert_eq!(strerror(-260), c"Flags not supported");
    }

    #[test]
    fn unknown_numbers_share_a_text() {
        for errnum in [255, -269, 100_000, i32::MAX, i32::MIN] {
            assert_eq!(strerror(errnum), c"Unknown error");
        }
    }

    #[test]
    fn all_of_our_own_are_there_once() {
        let own = kfi_bindings::KFI_ERRNO_OFFSET..kfi_bindings::KFI_ERRNO_MAX;
        for number in own {
            assert!(text(number) != c"Unknown error");
        }
        for (index, (number, text)) in TEXTS.iter().enumerate() {
            let rest = TEXTS.iter().skip(index + 1);
            assert!(rest.clone().all(|(other, _)| other != number));
            assert!(rest.clone().all(|(_, other)| other != text));
        }
    }
}
