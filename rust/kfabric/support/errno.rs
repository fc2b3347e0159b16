// SPDX-License-Identifier: GPL-2.0

//! Error numbers of kfabric.
//!
//! Most are the kernel's; those from 256 on are kfabric's own and unknown to [`kernel::error`].
//!
//! C header: [`include/kfi_errno.h`](srctree/include/kfi_errno.h)

use crate::support::num::signed;
use kernel::{
    alloc::AllocError,
    error::Error,
    fmt, //
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
            /// By its name, if it is one of those above.
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
    /// There is no such option.
    ENOPROTOOPT = KFI_ENOPROTOOPT;
    /// It is not connected.
    ENOTCONN = KFI_ENOTCONN;
    /// The peer's device has failed.
    EREMOTEIO = KFI_EREMOTEIO;
    /// A message was longer than the buffer for it.
    ETRUNC = KFI_ETRUNC;
}

impl Errno {
    /// What a C function returned other than 0; a number that is none becomes `EIO`.
    pub(crate) fn from_c(ret: kernel::ffi::c_int) -> Self {
        match ret {
            // INVARIANT: Just matched.
            -4095..=-1 => Self(-ret),
            _ => Self::EIO,
        }
    }

    /// Whether a pointer is an error number, as C has it (`IS_ERR`).
    pub(crate) fn is_in<T>(pointer: *const T) -> bool {
        // 4095 of them are at the end of all addresses, where nothing can be.
        pointer.addr() > usize::MAX - 4095
    }

    /// The return value of a C function that fails with this number.
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
}
