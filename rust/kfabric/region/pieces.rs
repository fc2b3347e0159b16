// SPDX-License-Identifier: GPL-2.0

//! Cutting a region into pieces that one region of a device can hold. Pure; knows no memory.

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
    /// The rest of a segment that did not fit.
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

#[kernel::macros::kunit_tests(kfabric_pieces)]
mod tests {
    use super::*;
    use crate::region::shape::Sum;
    use kernel::prelude::*;

    fn pieces(segments: &[(u64, u64)], max: u64) -> Result<KVec<(u64, u64)>> {
        let mut all = KVec::new();
        let segments = segments.iter().map(|&(start, len)| (Some(start), len));
        for piece in PieceIter::new(segments, max, u64::MAX) {
            all.push((piece.bytes, piece.pages), GFP_KERNEL)?;
        }
        Ok(all)
    }

    #[test]
    fn without_gaps_there_is_one() -> Result {
        let list = [(0x10800, PAGE - 0x800), (0x40000, PAGE), (0x80000, 7)];
        assert_eq!(pieces(&list, 3)?.as_slice(), [(2 * PAGE - 0x800 + 7, 3)]);
        let list = [(0x10000, 100), (0x10064, 100), (0x100c8, PAGE)];
        assert_eq!(pieces(&list, 2)?.as_slice(), [(PAGE + 200, 2)]);
        Ok(())
    }

    #[test]
    fn gaps_end_pieces() -> Result {
        let list = [(0x10000, 100), (0x20000, PAGE), (0x40005, 5), (0x50000, 1)];
        let cut = [(100, 1), (PAGE, 1), (5, 1), (1, 1)];
        assert_eq!(pieces(&list, 9)?.as_slice(), cut);
        // Backwards is not adjacent.
        let list = [(0x20064, 100), (0x20000, 100)];
        assert_eq!(pieces(&list, 9)?.as_slice(), [(100, 1), (100, 1)]);
        Ok(())
    }

    #[test]
    fn long_ones_are_cut_at_pages() -> Result {
        let list = [(0x10800, 5 * PAGE)];
        let cut = [(2 * PAGE - 0x800, 2), (2 * PAGE, 2), (PAGE + 0x800, 2)];
        assert_eq!(pieces(&list, 2)?.as_slice(), cut);
        // The page that two segments share counts once, also where it is the last.
        let list = [(0x10000, PAGE + 100), (0x11064, PAGE)];
        assert_eq!(pieces(&list, 2)?.as_slice(), [(2 * PAGE, 2), (100, 1)]);
        let list = [(0x10000, 100), (0x10064, 100)];
        assert_eq!(pieces(&list, 1)?.as_slice(), [(200, 1)]);
        Ok(())
    }

    #[test]
    fn bytes_limit_too() {
        let segments = || [(Some(0x10000), 4 * PAGE)].into_iter();
        assert_eq!(PieceIter::new(segments(), 9, 2 * PAGE + 5).count(), 2);
        assert_eq!(PieceIter::new(segments(), 9, 5).count(), 4);
    }

    #[test]
    fn agrees_with_the_shape() -> Result {
        // For every list: no byte is lost, and a shape without a gap is one piece.
        let mut seed = 12345_u64;
        let mut random = |max: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            (seed >> 33) % max
        };
        for _ in 0..500 {
            let mut sum = Sum::default();
            let mut list = KVec::new();
            let mut end = 0;
            for _ in 0..=random(5) {
                let start = match random(3) {
                    0 if end != 0 => end,
                    1 => (1 + random(1000)) * PAGE,
                    _ => PAGE + random(1 << 24),
                };
                let len = match random(2) {
                    0 => PAGE - page_offset(start),
                    _ => 1 + random(5 * PAGE),
                };
                end = start + len;
                sum.push(Some(start), len).map_err(|_| EINVAL)?;
                list.push((start, len), GFP_KERNEL)?;
            }
            let (all, shape) = (pieces(&list, 1 << 20)?, sum.shape());
            assert_eq!(all.iter().map(|piece| piece.0).sum::<u64>(), shape.bytes());
            assert!((all.len() == 1) == shape.gap().is_none());
            if let [(_, pages)] = all.as_slice() {
                assert_eq!(*pages, shape.pages());
            }
            for max in 1..4 {
                let all = pieces(&list, max)?;
                assert_eq!(all.iter().map(|piece| piece.0).sum::<u64>(), shape.bytes());
                assert!(all.iter().all(|piece| piece.1 >= 1 && piece.1 <= max));
            }
        }
        Ok(())
    }
}
