// SPDX-License-Identifier: GPL-2.0

//! The limits of one region of a domain, and authorization keys.

use super::shape::Shape;
use crate::prelude::*;
use core::slice;

/// The limits of one region of a domain.
#[derive(Clone, Copy, Debug)]
pub struct MrLimits {
    /// Most regions of a domain (`mr_cnt`).
    pub regions: usize,
    /// Most segments (`mr_iov_limit`).
    pub segments: usize,
    /// Most pages.
    pub pages: u64,
    /// Most bytes.
    pub bytes: u64,
    /// May segments have gaps between them?
    pub gaps: bool,
    /// Flags that a registration may carry.
    pub flags: u64,
    /// Does the provider know authorization keys?
    pub auth_keys: bool,
    /// Can regions be refreshed when other pages are behind them? If not: what is said then.
    pub refresh: Result<(), Refusal>,
    /// Can the device reach memory of other PCI devices (P2PDMA)? Which of it is for the DMA
    /// mapping to tell.
    pub peer_to_peer: bool,
    /// Most device regions that one region can consist of. Where that is more than 1, gaps and
    /// long regions are no matter: [`pages`](Self::pages) and [`bytes`](Self::bytes) are those of
    /// a piece.
    pub pieces: usize,
    /// Does the provider take the memory of long lists by [`Extents::next_entries`](crate::Extents::next_entries)
    /// first? Then a list is counted while its memory is looked at, as long as it may be one of whole pages.
    pub by_entries: bool,
    /// Does the provider keep memory, to use it by the processor ([`CpuMemory`](crate::cpu_memory::CpuMemory))?
    pub leases: bool,
}

impl MrLimits {
    /// Nothing at all; what others start from.
    pub const NONE: Self = Self {
        regions: 0,
        segments: 0,
        pages: 0,
        bytes: 0,
        gaps: false,
        flags: 0,
        auth_keys: false,
        refresh: Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't refresh regions",
        )),
        peer_to_peer: false,
        pieces: 1,
        by_entries: false,
        leases: false,
    };

    /// Checks whether a list of `count` entries with this shape is within the limits. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the list has a gap that one device region can't have.
    /// - `E2BIG`: the list has too many segments, pages or bytes.
    pub(super) fn check(&self, shape: &Shape, count: usize) -> Result<(), Refusal> {
        let one_piece = self.pieces <= 1;
        if let Some(index) = shape.gap() {
            if one_piece && !self.gaps {
                return Err(Refusal::new(Errno::EINVAL, c"gap before this segment").at(index));
            }
        }
        // A longer list was read no further than to the limit.
        if count > self.segments {
            return Err(Refusal::new(Errno::E2BIG, c"too many segments").value(widen(count)));
        }
        if one_piece && shape.pages() > self.pages {
            return Err(Refusal::new(Errno::E2BIG, c"too many pages").value(shape.pages()));
        }
        if one_piece && shape.bytes() > self.bytes {
            return Err(Refusal::new(Errno::E2BIG, c"too many bytes").value(shape.bytes()));
        }
        Ok(())
    }
}

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
            // SAFETY: `key` is not null, so it is valid for `len` bytes and `'a`, as the caller
            // promises. `len` is at most `MAX`.
            (len, false) => Self::Some(unsafe { slice::from_raw_parts(key, len) }),
        }
    }

    /// Returns the domain's key if there is none, unless the domain's is empty.
    pub(crate) fn or(self, domain: &'a [u8]) -> Self {
        match self {
            Self::None if !domain.is_empty() => Self::Some(domain),
            _ => self,
        }
    }

    /// Returns the key, if there is one.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the key is missing or too long.
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

    /// Checks a key as [`checked`](Self::checked) does.
    ///
    /// # Errors
    ///
    /// - The errors of [`checked`](Self::checked).
    /// - `EOPNOTSUPP`: there is a key, and the provider doesn't know keys.
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
