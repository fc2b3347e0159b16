// SPDX-License-Identifier: GPL-2.0

//! The addresses that a region was registered at, kept for when other pages are behind them.

mod kunit;

use crate::{
    object::domain::DomainObject,
    region::{
        request::MrRequest,
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

    /// Those of a request that was found valid, if its region can be refreshed. May sleep.
    pub(super) fn of(domain: &DomainObject, request: &MrRequest<'_>) -> Result<Self, Refusal> {
        let mut ranges = Self::Unknown;
        if domain.mr_limits().refresh.is_ok() {
            ranges.set(request.source())?;
        }
        Ok(ranges)
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
