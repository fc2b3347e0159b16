// SPDX-License-Identifier: GPL-2.0

//! The addresses that a region was registered at, kept for when other pages are behind them.
//!
//! A single range is known by its start and length ([`DescEntry`]). Only a list is kept as one.

mod kunit;

use crate::{
    object::{
        descs::DescEntry,
        domain::DomainObject, //
    },
    region::{
        request::MrRequest,
        segment_list::SegmentList,
        shape::AddrRange,
        source::Source, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::ptr::without_provenance_mut;
use kfi_bindings::kvec;

/// Returns the list of a valid request, if it has several segments and its region can be refreshed.
#[inline]
pub(super) fn to_keep<'a>(domain: &DomainObject, request: &MrRequest<'a>) -> &'a [kvec] {
    match request.source() {
        Source::Kvec(list) if domain.mr_limits.refresh.is_ok() => match list.entries(usize::MAX) {
            [_] => &[],
            list => list,
        },
        _ => &[],
    }
}

/// Returns the range of a region of one segment.
pub(super) fn one(local: &DescEntry) -> Option<kvec> {
    Some(kvec {
        iov_base: without_provenance_mut(usize::try_from(local.start()?).ok()?),
        iov_len: usize::try_from(local.len).ok()?,
    })
}

/// Checks that each part lies within one of the ranges.
pub(super) fn contain(ranges: &[kvec], parts: &SegmentList<'_, kvec>) -> Result<(), Refusal> {
    for (index, part) in parts.entries(usize::MAX).iter().enumerate() {
        let part = span(part).map_err(|e| e.at(index))?;
        let holds = |range: &kvec| {
            span(range)
                .is_ok_and(|range| range.start() <= part.start() && part.end() <= range.end())
        };
        if !ranges.iter().any(holds) {
            let refusal = Refusal::new(Errno::EINVAL, c"not within what was registered");
            return Err(refusal.at(index).value(part.start()));
        }
    }
    Ok(())
}

fn span(kvec: &kvec) -> Result<AddrRange, Refusal> {
    AddrRange::new(widen(kvec.iov_base.addr()), widen(kvec.iov_len))
}
