// SPDX-License-Identifier: GPL-2.0

//! Cutting a region into pieces, each of which one region of a device can hold. Pure; knows no
//! memory.

mod kunit;

use crate::{
    region::shape::{
        page_offset,
        pages, //
    },
    support::num::widen, //
};
use kernel::page::PAGE_SIZE;

const PAGE: u64 = widen(PAGE_SIZE);

/// A piece of a region: it has no gap, and starts and ends where segments or pages do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Length in bytes; not 0.
    pub bytes: u64,
    /// How many pages it touches.
    pub pages: u64,
}

/// Iterator of [`MrRequest::pieces`](crate::MrRequest::pieces): the longest pieces there can be, in
/// order.
///
/// Where it cuts depends on the segments' addresses only, not on what is behind them.
pub(crate) struct PieceIter<I> {
    segments: I,
    /// What is left of a segment that did not fit.
    rest: Option<(Option<u64>, u64)>,
    max_pages: u64,
}

impl<I: Iterator<Item = (Option<u64>, u64)>> PieceIter<I> {
    /// Cuts segments, found valid before, into pieces of at most this many pages and bytes; but at
    /// least a page.
    pub(crate) fn new(segments: I, max_pages: u64, max_bytes: u64) -> Self {
        Self {
            segments,
            rest: None,
            max_pages: max_pages.min(max_bytes / PAGE).max(1),
        }
    }
}

impl<I: Iterator<Item = (Option<u64>, u64)>> Iterator for PieceIter<I> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let mut piece = Piece::default();
        let mut end = None;
        while let Some((start, len)) = self.rest.take().or_else(|| self.segments.next()) {
            let offset = page_offset(start.unwrap_or(0));
            // The piece's last page is this segment's first.
            let shared = end.is_some() && end == start && offset != 0;
            let aligned = offset == 0 && end.is_none_or(|end| page_offset(end) == 0);
            if piece.bytes > 0 && !shared && !aligned && start.is_some() {
                self.rest = Some((start, len));
                break;
            }
            let used = piece.pages - u64::from(shared);
            let room = (self.max_pages.saturating_sub(used))
                .saturating_mul(PAGE)
                .saturating_sub(offset);
            let here = len.min(room);
            if here > 0 {
                piece.pages = used + pages(offset, here);
                piece.bytes += here;
                end = start.map(|start| start + here);
            }
            if here < len {
                self.rest = Some((start.map(|start| start + here), len - here));
                break;
            }
        }
        (piece.bytes > 0).then_some(piece)
    }
}
