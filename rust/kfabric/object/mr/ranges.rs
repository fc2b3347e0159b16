// SPDX-License-Identifier: GPL-2.0

//! The addresses that a region was registered at, kept for when other pages are behind them.

use crate::{
    region::{
        shape::Span,
        source::{
            List,
            Source, //
        }, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::{
    mem,
    slice, //
};
use kernel::prelude::*;
use kfi_bindings::kvec;

/// The addresses of a region.
pub(super) enum Ranges {
    /// Not known: the region was not registered by addresses, or can't be refreshed.
    Unknown,
    /// One buffer.
    One(kvec),
    /// A list.
    Many(KVVec<kvec>),
}

// SAFETY: The addresses are only compared and passed on, which any thread may do.
unsafe impl Send for Ranges {}

impl Ranges {
    /// None, but room for so many. May sleep.
    pub(super) fn with_capacity(count: usize) -> Result<Self, Refusal> {
        Ok(match count {
            0 => Self::Unknown,
            count => Self::Many(KVVec::with_capacity(count, GFP_KERNEL)?),
        })
    }

    /// Becomes those of a request that was found valid, in the room that there is. May sleep.
    pub(super) fn set(&mut self, source: &Source<'_>) -> Result<(), Refusal> {
        let list = match source {
            Source::Kvec(list) => list.entries(usize::MAX),
            _ => &[],
        };
        let room = match mem::replace(self, Self::Unknown) {
            Self::Many(mut room) => {
                room.clear();
                Some(room)
            }
            _ => None,
        };
        *self = match (list, room) {
            ([], None) => Self::Unknown,
            ([one], None) => Self::One(*one),
            (list, room) => {
                let mut many = room.unwrap_or_default();
                many.extend_from_slice(list, GFP_KERNEL)?;
                Self::Many(many)
            }
        };
        Ok(())
    }

    /// As a list again; empty if not known.
    pub(super) fn as_slice(&self) -> &[kvec] {
        match self {
            Self::Unknown => &[],
            Self::One(one) => slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Checks that each part lies within one of the addresses' ranges.
    pub(super) fn contain(&self, parts: &List<'_, kvec>) -> Result<(), Refusal> {
        for (index, part) in parts.entries(usize::MAX).iter().enumerate() {
            let part = span(part).map_err(|e| e.at(index))?;
            let holds = |range: &kvec| {
                span(range)
                    .is_ok_and(|range| range.start() <= part.start() && part.end() <= range.end())
            };
            if !self.as_slice().iter().any(holds) {
                let refusal = Refusal::new(Errno::EINVAL, c"not within what was registered");
                return Err(refusal.at(index).value(part.start()));
            }
        }
        Ok(())
    }
}

fn span(kvec: &kvec) -> Result<Span, Refusal> {
    Span::new(widen(kvec.iov_base.addr()), widen(kvec.iov_len))
}

#[kernel::macros::kunit_tests(kfabric_mr_ranges)]
mod tests {
    use super::*;

    fn at(base: usize, len: usize) -> kvec {
        kvec {
            iov_base: core::ptr::without_provenance_mut(base),
            iov_len: len,
        }
    }

    fn contained(ranges: &Ranges, part: kvec) -> bool {
        match &Source::kvecs(slice::from_ref(&part)) {
            Source::Kvec(list) => ranges.contain(list).is_ok(),
            _ => false,
        }
    }

    #[test]
    fn parts_lie_within_one_range() -> Result {
        let list = [at(0x1000, 0x100), at(0x5000, 0x2000)];
        let mut ranges = Ranges::Unknown;
        ranges.set(&Source::kvecs(&list))?;
        for good in [at(0x1000, 0x100), at(0x10ff, 1), at(0x5001, 0x1fff)] {
            assert!(contained(&ranges, good));
        }
        for bad in [
            at(0xfff, 2),
            at(0x10ff, 2),
            at(0x4fff, 1),
            at(0x5000, 0x2001),
            at(0x1000, 0),
            at(usize::MAX, 2),
        ] {
            assert!(!contained(&ranges, bad));
        }
        Ok(())
    }

    #[test]
    fn one_buffer_needs_no_list() -> Result {
        let list = [at(0x1000, 1)];
        let mut ranges = Ranges::Unknown;
        ranges.set(&Source::kvecs(&list))?;
        assert!(matches!(ranges, Ranges::One(_)));
        assert!(ranges.as_slice().len() == 1 && contained(&ranges, at(0x1000, 1)));
        assert!(!contained(&Ranges::Unknown, at(0x1000, 1)));
        Ok(())
    }

    #[test]
    fn room_is_kept() -> Result {
        let list = [at(0x1000, 1), at(0x2000, 1)];
        let mut ranges = Ranges::with_capacity(2)?;
        for n in [2, 1, 2] {
            ranges.set(&Source::kvecs(list.get(..n).ok_or(EINVAL)?))?;
            assert_eq!(ranges.as_slice().len(), n);
            assert!(matches!(&ranges, Ranges::Many(room) if room.capacity() >= 2));
        }
        Ok(())
    }
}
