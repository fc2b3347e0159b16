// SPDX-License-Identifier: GPL-2.0

//! What each error number means.

use crate::support::errno::Errno;
use kernel::{
    fmt,
    str::CStr, //
};

macro_rules! texts {
    ($($name:ident: $text:literal;)*) => {
        /// Every number of `kfi_errno.h`, without its sign.
        const TEXTS: &[(u32, &CStr)] = &[$((kfi_bindings::$name, $text)),*];
    };
}

texts! {
    KFI_SUCCESS: c"Success";
    KFI_EPERM: c"Not permitted";
    KFI_ENOENT: c"No such entry";
    KFI_EINTR: c"Interrupted by a signal";
    KFI_EIO: c"Input or output failed";
    KFI_ENXIO: c"No such device or address";
    KFI_E2BIG: c"Too many segments or pages";
    KFI_EBADF: c"Bad descriptor";
    KFI_EAGAIN: c"Nothing there now, try again";
    KFI_ENOMEM: c"Out of memory";
    KFI_EACCES: c"Access denied";
    KFI_EFAULT: c"Memory that may not be used";
    KFI_EBUSY: c"Still in use";
    KFI_EEXIST: c"Exists already";
    KFI_ENODEV: c"No such device, or it is gone";
    KFI_EINVAL: c"Invalid argument";
    KFI_EMFILE: c"Too many open objects";
    KFI_ENOSPC: c"Resources of the device or domain used up";
    KFI_ERANGE: c"Result out of range";
    KFI_ENAMETOOLONG: c"Name too long";
    KFI_ENOSYS: c"Operation not implemented by this provider";
    KFI_ENOMSG: c"No message";
    KFI_ENODATA: c"Nothing found that meets the request";
    KFI_EPROTO: c"Protocol error";
    KFI_EOVERFLOW: c"Value too large for its type";
    KFI_EMSGSIZE: c"Message too long";
    KFI_ENOPROTOOPT: c"Option not available";
    KFI_EPROTONOSUPPORT: c"Protocol not supported";
    KFI_EOPNOTSUPP: c"Not supported by this provider";
    KFI_EAFNOSUPPORT: c"Address family not supported";
    KFI_EADDRINUSE: c"Address in use";
    KFI_EADDRNOTAVAIL: c"Address not available";
    KFI_ENETDOWN: c"No active port, or network down";
    KFI_ENETUNREACH: c"Network unreachable";
    KFI_ECONNABORTED: c"Connection given up";
    KFI_ECONNRESET: c"Connection reset by the peer";
    KFI_ENOBUFS: c"No buffer space";
    KFI_EISCONN: c"Connected already";
    KFI_ENOTCONN: c"Not connected";
    KFI_ESHUTDOWN: c"Endpoint shut down";
    KFI_ETIMEDOUT: c"Timed out";
    KFI_ECONNREFUSED: c"Connection refused";
    KFI_EHOSTDOWN: c"Host down";
    KFI_EHOSTUNREACH: c"Host unreachable";
    KFI_EALREADY: c"Under way already";
    KFI_EINPROGRESS: c"Started, and not done yet";
    KFI_EREMOTEIO: c"Input or output failed at the peer";
    KFI_ECANCELED: c"Canceled";
    KFI_ENOTRECOVERABLE: c"The device won't let go of the memory, which must never be freed";
    KFI_EKEYREJECTED: c"Requested key not available";
    KFI_EOTHER: c"Unspecified error";
    KFI_ETOOSMALL: c"Buffer too small for the result";
    KFI_EOPBADSTATE: c"Not allowed in this state";
    KFI_EAVAIL: c"An error entry waits to be read";
    KFI_EBADFLAGS: c"Flags not supported";
    KFI_ENOEQ: c"No event queue";
    KFI_EDOMAIN: c"Wrong domain, or none";
    KFI_ENOCQ: c"No completion queue";
    KFI_ECRC: c"Checksum doesn't match";
    KFI_ETRUNC: c"Data cut off";
    KFI_ENOKEY: c"Key in use, or no such key";
    KFI_ENOAV: c"No address vector";
    KFI_EOVERRUN: c"Queue overrun";
}

/// The text for a number without its sign, if it has one. Any context.
pub(super) fn known(errnum: u32) -> Option<&'static CStr> {
    let found = TEXTS.iter().find(|(number, _)| *number == errnum);
    found.map(|(_, text)| *text)
}

/// The text for a number without its sign. Any context.
pub(super) fn text(errnum: u32) -> &'static CStr {
    known(errnum).unwrap_or(c"Unknown error")
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

#[kernel::macros::kunit_tests(kfabric_strings_errors)]
mod tests {
    use super::*;
    use kernel::str::CStrExt;

    /// `kfi_strerror()`, as C calls it.
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
