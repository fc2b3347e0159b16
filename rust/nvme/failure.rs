// SPDX-License-Identifier: GPL-2.0

//! Errors of nvme-core's functions.

use crate::{
    pdu::KEPT,
    prelude::*, //
};

/// A failure as nvme-core returns it: a negative errno, or the positive status of a command.
#[derive(Clone, Copy)]
pub(crate) struct Failure(c_int);

impl Failure {
    /// Returns the number that nvme-core understands.
    pub(crate) fn number(self) -> c_int {
        self.0
    }
}

/// The status of a command becomes `EIO`.
impl From<Failure> for Error {
    fn from(Failure(number): Failure) -> Self {
        Error::from_errno(if number < 0 { number } else { EIO.to_errno() })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_errno())
    }
}

/// Converts the return value of a function of nvme-core, where 0 is success.
pub(crate) fn check(number: c_int) -> Result<(), Failure> {
    match number {
        0 => Ok(()),
        // This host's own status. The target has not forbidden another attempt to connect.
        _ if number == c_int::from(KEPT) => Err(EIO.into()),
        _ => Err(Failure(number)),
    }
}
