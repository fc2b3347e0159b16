// SPDX-License-Identifier: GPL-2.0

//! How requests end.

use kernel::bindings;

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Well.
    Ok,
    /// The disk can't do that.
    NotSupported,
    /// It took too long.
    Timeout,
    /// No room is left on the disk.
    NoSpace,
    /// The way to the disk has failed; another one may do.
    Transport,
    /// The disk has failed for good.
    Target,
    /// Somebody else has reserved it.
    Reserved,
    /// The data can't be read, or written.
    Medium,
    /// The data and what protects them don't match.
    Protection,
    /// There was not enough memory.
    NoMemory,
    /// The disk is gone.
    Offline,
    /// The request makes no sense to the disk.
    Invalid,
    /// Anything else.
    Io,
}

impl Status {
    /// Returns the errno of the status.
    const fn errno(self) -> u32 {
        match self {
            Self::Ok => 0,
            Self::NotSupported => bindings::EOPNOTSUPP,
            Self::Timeout => bindings::ETIMEDOUT,
            Self::NoSpace => bindings::ENOSPC,
            Self::Transport => bindings::ENOLINK,
            Self::Target => bindings::EREMOTEIO,
            Self::Reserved => bindings::EBADE,
            Self::Medium => bindings::ENODATA,
            Self::Protection => bindings::EILSEQ,
            Self::NoMemory => bindings::ENOMEM,
            Self::Offline => bindings::ENODEV,
            Self::Invalid => bindings::EINVAL,
            Self::Io => bindings::EIO,
        }
    }

    /// Returns the status as the block layer has it.
    pub(crate) fn raw(self) -> bindings::blk_status_t {
        let errno = i32::try_from(self.errno()).unwrap_or(0);
        // SAFETY: Any number may be asked about.
        unsafe { bindings::errno_to_blk_status(-errno) }
    }
}
