// SPDX-License-Identifier: GPL-2.0

//! The ways in which setting a controller up fails.

use kernel::{
    bindings,
    prelude::*, //
};

/// A failure as nvme-core has it: an errno below 0, or the status of a command above.
#[derive(Clone, Copy)]
pub(crate) struct Failure(c_int);

impl Failure {
    /// Returns the number that nvme-core understands.
    pub(crate) fn number(self) -> c_int {
        self.0
    }

    /// Returns the errno for a caller that knows no status.
    pub(crate) fn error(self) -> Error {
        match self.0 {
            errno if errno < 0 => Error::from_errno(errno),
            _ => EIO,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_errno())
    }
}

/// Returns the result of a function of nvme-core: 0, an errno, or the status of a command.
pub(crate) fn check(number: c_int) -> Result<(), Failure> {
    match number {
        0 => Ok(()),
        _ => Err(Failure(number)),
    }
}

macro_rules! errno {
    ($($name:ident $number:ident;)*) => {$(
        #[doc = concat!("Returns `", stringify!($number), "`, which not each kernel's crate has.")]
        pub(crate) fn $name() -> Error {
            Error::from_errno(i32::try_from(bindings::$number).map_or(-1, |errno| -errno))
        }
    )*};
}

errno! {
    not_connected ENOTCONN;
    not_supported EOPNOTSUPP;
    already EALREADY;
}
