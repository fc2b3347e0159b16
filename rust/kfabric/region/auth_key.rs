// SPDX-License-Identifier: GPL-2.0

//! Authorization keys.

use super::limits::MrLimits;
use crate::support::{
    errno::Errno,
    num::widen,
    refusal::Refusal, //
};
use core::slice;

/// An authorization key, as attributes of C have it.
#[derive(Clone, Copy)]
pub(crate) enum AuthKey<'a> {
    /// `auth_key_size` is 0.
    None,
    /// A size, but no key.
    Missing,
    /// More bytes than any provider takes.
    TooLong(usize),
    /// A key.
    Some(&'a [u8]),
}

impl<'a> AuthKey<'a> {
    /// Most bytes of a key.
    pub(crate) const MAX: usize = 256;

    /// Takes a key from C.
    ///
    /// # Safety
    ///
    /// `key` is null, or valid for `len` bytes and `'a`.
    pub(crate) unsafe fn from_raw(key: *const u8, len: usize) -> Self {
        match (len, key.is_null()) {
            (0, _) => Self::None,
            (_, true) => Self::Missing,
            (len, false) if len > Self::MAX => Self::TooLong(len),
            // SAFETY: By the requirements of this function; the length is one that there can be.
            (len, false) => Self::Some(unsafe { slice::from_raw_parts(key, len) }),
        }
    }

    /// The same, but with the domain's key where there is none; that may be empty.
    pub(crate) fn or(self, domain: &'a [u8]) -> Self {
        match self {
            Self::None if !domain.is_empty() => Self::Some(domain),
            _ => self,
        }
    }

    /// The key, if there is one; `EINVAL` if it is missing or too long.
    pub(crate) fn checked(self) -> Result<Option<&'a [u8]>, Refusal> {
        match self {
            Self::None => Ok(None),
            Self::Some(key) => Ok(Some(key)),
            Self::Missing => Err(Refusal::new(Errno::EINVAL, c"auth_key_size without a key")),
            Self::TooLong(len) => {
                Err(Refusal::new(Errno::EINVAL, c"auth_key too long").value(widen(len)))
            }
        }
    }

    /// As [`checked`](Self::checked), and `EOPNOTSUPP` for a key where keys are not known.
    pub(crate) fn parse(self, limits: &MrLimits) -> Result<Option<&'a [u8]>, Refusal> {
        let len = match self {
            Self::Some(key) => key.len(),
            Self::TooLong(len) => len,
            Self::None | Self::Missing => 0,
        };
        if len > 0 && !limits.auth_keys {
            let refusal = Refusal::new(Errno::EOPNOTSUPP, c"provider knows no auth_key");
            return Err(refusal.value(widen(len)));
        }
        self.checked()
    }
}
