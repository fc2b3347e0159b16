// SPDX-License-Identifier: GPL-2.0

//! Error numbers of kfabric, and a text for each.
//!
//! Most are the kernel's. Those from 256 on are kfabric's own and unknown to [`kernel::error`].
//!
//! C header: [`include/kfi_errno.h`](srctree/include/kfi_errno.h)

use crate::support::num::signed;
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

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $c:ident;)*) => {
        impl Errno {
            // INVARIANT: Every number in `kfi_errno.h` is in range; checked below.
            $($(#[$doc])* pub const $name: Self = Self(signed(kfi_bindings::$c));)*
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
        const _: () = {
            $(assert!(kfi_bindings::$c > 0 && kfi_bindings::$c < 4096);)*
        };
    };
}

errnos! {
    /// Argument list too long: more segments or pages than one region can hold.
    E2BIG = KFI_E2BIG;
    /// A peer may not do that.
    EACCES = KFI_EACCES;
    /// Nothing is there now, or there is no room now.
    EAGAIN = KFI_EAGAIN;
    /// A flag that the provider does not support.
    EBADFLAGS = KFI_EBADFLAGS;
    /// The object still has children or users.
    EBUSY = KFI_EBUSY;
    /// Not done, since something else failed.
    ECANCELED = KFI_ECANCELED;
    /// Something of the same name is there already.
    EEXIST = KFI_EEXIST;
    /// Memory that can't be registered.
    EFAULT = KFI_EFAULT;
    /// A signal ended the wait.
    EINTR = KFI_EINTR;
    /// An argument makes no sense.
    EINVAL = KFI_EINVAL;
    /// The device reported a failure.
    EIO = KFI_EIO;
    /// The key is not one that can be had.
    EKEYREJECTED = KFI_EKEYREJECTED;
    /// No port of the device is active.
    ENETDOWN = KFI_ENETDOWN;
    /// The key is in use, or there is none.
    ENOKEY = KFI_ENOKEY;
    /// No provider meets what was asked for.
    ENODATA = KFI_ENODATA;
    /// The device is gone, or there never was one of that name.
    ENODEV = KFI_ENODEV;
    /// Out of memory.
    ENOMEM = KFI_ENOMEM;
    /// Regions, or other resources of the device, are used up.
    ENOSPC = KFI_ENOSPC;
    /// The device won't let go of memory, which must never be freed.
    ENOTRECOVERABLE = KFI_ENOTRECOVERABLE;
    /// Not implemented by this provider.
    ENOSYS = KFI_ENOSYS;
    /// The object's state doesn't allow it now.
    EOPBADSTATE = KFI_EOPBADSTATE;
    /// Not supported by this provider.
    EOPNOTSUPP = KFI_EOPNOTSUPP;
    /// It didn't happen in time.
    ETIMEDOUT = KFI_ETIMEDOUT;
    /// A queue was full, and entries are lost.
    EOVERRUN = KFI_EOVERRUN;
    /// Room for the answer is too small.
    ETOOSMALL = KFI_ETOOSMALL;
    /// A resource of the provider is not available, or an error entry waits to be read.
    EAVAIL = KFI_EAVAIL;
    /// Somebody listens at that address already.
    EADDRINUSE = KFI_EADDRINUSE;
    /// No address of this machine.
    EADDRNOTAVAIL = KFI_EADDRNOTAVAIL;
    /// The peer does not want the connection.
    ECONNREFUSED = KFI_ECONNREFUSED;
    /// The connection was lost.
    ECONNRESET = KFI_ECONNRESET;
    /// No way leads there.
    EHOSTUNREACH = KFI_EHOSTUNREACH;
    /// It is connected already.
    EISCONN = KFI_EISCONN;
    /// More bytes than there may be.
    EMSGSIZE = KFI_EMSGSIZE;
    /// No completion queue is bound.
    ENOCQ = KFI_ENOCQ;
    /// No event queue is bound.
    ENOEQ = KFI_ENOEQ;
    /// There is none.
    ENOENT = KFI_ENOENT;
    /// No option of that name.
    ENOPROTOOPT = KFI_ENOPROTOOPT;
    /// It is not connected.
    ENOTCONN = KFI_ENOTCONN;
    /// The peer's device has failed.
    EREMOTEIO = KFI_EREMOTEIO;
    /// A message was longer than the buffer for it.
    ETRUNC = KFI_ETRUNC;
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
