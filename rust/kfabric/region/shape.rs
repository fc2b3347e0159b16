// SPDX-License-Identifier: GPL-2.0

//! The arithmetic of regions: segments, pages, gaps, and the pieces that one region of a device can hold. Pure; knows
//! no memory.

use crate::prelude::*;
use kernel::page::PAGE_SIZE;

/// A range of addresses, whatever they address: kernel virtual, physical, or the device's.
///
/// # Invariants
///
/// `len` is not 0 and `start + len` does not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddrRange {
    start: u64,
    len: u64,
}

impl AddrRange {
    /// Takes a segment's address and length in bytes.
    pub fn new(start: u64, len: u64) -> Result<Self, Refusal> {
        if len == 0 {
            return Err(Refusal::new(Errno::EINVAL, c"segment of length 0"));
        }
        if start.checked_add(len).is_none() {
            return Err(Refusal::new(Errno::EINVAL, c"address and length wrap").value(start));
        }
        // INVARIANT: Both were just checked.
        Ok(Self { start, len })
    }

    /// Returns the first address.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// Returns the length in bytes.
    pub const fn bytes(self) -> u64 {
        self.len
    }

    /// Returns the first address after the range.
    pub const fn end(self) -> u64 {
        self.start + self.len
    }
}

/// Returns the offset of an address in its page.
pub(crate) const fn page_offset(addr: u64) -> u64 {
    addr & (widen(PAGE_SIZE) - 1)
}

/// Returns the number of pages that a range touches.
pub(crate) const fn pages(offset: u64, len: u64) -> u64 {
    // The sum can't overflow by more than a page: `len` counts bytes that exist in memory.
    offset.saturating_add(len).div_ceil(widen(PAGE_SIZE))
}

/// The number of segments and pages of a list, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    segments: usize,
    pub(super) len: u64,
    pub(super) pages: u64,
    pub(super) gap: Option<usize>,
}

/// A shape that is being added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    shape: Shape,
    /// Offset in its page of the first byte of the run of adjacent segments that is being added
    /// to, and the run's length.
    run: (u64, u64),
    /// Pages of the runs before.
    done: u64,
    /// Where the last segment ended; unknown after a segment without an address.
    end: Option<u64>,
}

impl Sum {
    /// Adds a segment. `start` is `None` if the address is not known (and will be refused when
    /// memory is looked at). A segment without an address joins with anything.
    #[inline]
    pub(crate) fn push(&mut self, start: Option<u64>, len: u64) -> Result<(), Refusal> {
        let index = self.shape.segments;
        let span = AddrRange::new(start.unwrap_or(0), len).map_err(|e| e.at(index))?;
        let Some(total) = self.shape.len.checked_add(len) else {
            return Err(Refusal::new(Errno::EINVAL, c"sum of lengths overflows").at(index));
        };

        let adjacent = index > 0 && start.is_some() && self.end == start;
        if adjacent {
            self.run.1 = self.run.1.saturating_add(len);
        } else {
            if let (Some(end), Some(start)) = (self.end, start) {
                if self.shape.gap.is_none() && (page_offset(end) != 0 || page_offset(start) != 0) {
                    self.shape.gap = Some(index);
                }
            }
            self.done = self.shape.pages;
            self.run = (page_offset(span.start()), len);
        }
        self.shape.pages = self.done.saturating_add(pages(self.run.0, self.run.1));
        self.end = start.map(|_| span.end());
        self.shape.len = total;
        self.shape.segments += 1;
        Ok(())
    }

    /// Adds `count` segments of `bytes` bytes together, at any addresses. All of them must start
    /// and end at page boundaries, and so must their neighbours. Returns `false`, and adds nothing,
    /// if the sum of lengths overflows.
    #[inline]
    pub(super) fn push_whole(&mut self, count: usize, bytes: u64) -> bool {
        let Some(total) = self.shape.len.checked_add(bytes) else {
            return false;
        };
        self.shape.pages = self.shape.pages.saturating_add(pages(0, bytes));
        (self.done, self.run, self.end) = (self.shape.pages, (0, 0), Some(0));
        self.shape.len = total;
        self.shape.segments += count;
        true
    }

    /// Returns the shape of everything that was added.
    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }
}

impl Shape {
    /// Returns the shape of one segment, as [`Sum::push`] adds it.
    #[inline(always)]
    pub(crate) fn of_one(start: Option<u64>, len: u64) -> Result<Self, Refusal> {
        let span = AddrRange::new(start.unwrap_or(0), len).map_err(|e| e.at(0))?;
        Ok(Self {
            segments: 1,
            len,
            pages: pages(page_offset(span.start()), len),
            gap: None,
        })
    }

    /// Returns the shape of a list of `count` segments, not 0, that are a page each; `None` if that
    /// is too long.
    pub(super) fn of_pages(count: usize) -> Option<Self> {
        let mut sum = Sum::default();
        let bytes = widen(count).checked_mul(widen(PAGE_SIZE))?;
        sum.push_whole(count, bytes).then_some(sum.shape)
    }

    /// Returns the number of segments.
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Returns the length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// Returns the number of pages that the region touches. A page that neighbours share counts
    /// once.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the first segment that does not follow on from the one before it: their joint is not
    /// at a page boundary on both sides, and they are not adjacent.
    pub const fn gap(&self) -> Option<usize> {
        self.gap
    }
}

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

#[kernel::macros::kunit_tests(kfabric_shape)]
mod tests {
    use super::*;

    const PAGE: u64 = widen(PAGE_SIZE);

    fn shape(segments: &[(u64, u64)]) -> Result<Shape, Errno> {
        let mut sum = Sum::default();
        for &(start, len) in segments {
            sum.push(Some(start), len).map_err(|e| e.errno())?;
        }
        Ok(*sum.shape())
    }

    fn counts(segments: &[(u64, u64)]) -> Option<(u64, u64, Option<usize>)> {
        let shape = shape(segments).ok()?;
        Some((shape.bytes(), shape.pages(), shape.gap()))
    }

    #[test]
    fn single_segments() {
        assert_eq!(counts(&[(0x10000, 1)]), Some((1, 1, None)));
        assert_eq!(counts(&[(0x10000, PAGE)]), Some((PAGE, 1, None)));
        assert_eq!(counts(&[(0x10000, PAGE + 1)]), Some((PAGE + 1, 2, None)));
        assert_eq!(counts(&[(0x10fff, 2)]), Some((2, 2, None)));
        assert_eq!(counts(&[(0x10001, PAGE)]), Some((PAGE, 2, None)));
    }

    #[test]
    fn a_list_of_one_is_counted_as_any() {
        for (start, len) in [
            (0x10000, 1),
            (0x10fff, 2),
            (0x10001, PAGE),
            (0, 3),
            (7, 0),
            (u64::MAX, 2),
        ] {
            for start in [Some(start), None] {
                let mut any = Sum::default();
                let pushed = any.push(start, len).map(|()| *any.shape());
                assert_eq!(Shape::of_one(start, len), pushed);
            }
        }
    }

    #[test]
    fn aligned_joints_are_no_gaps() {
        let list = [(0x10800, PAGE - 0x800), (0x40000, PAGE), (0x80000, 7)];
        assert_eq!(counts(&list), Some((2 * PAGE - 0x800 + 7, 3, None)));
    }

    #[test]
    fn adjacent_segments_share_their_page() {
        let list = [(0x10000, 100), (0x10064, 100), (0x100c8, PAGE)];
        assert_eq!(counts(&list), Some((PAGE + 200, 2, None)));
    }

    #[test]
    fn gaps_are_found_at_the_first_one() {
        assert_eq!(
            shape(&[(0x10000, 100), (0x20000, 1)]).map(|s| s.gap()),
            Ok(Some(1))
        );
        assert_eq!(
            shape(&[(0x10000, PAGE), (0x20001, 1)]).map(|s| s.gap()),
            Ok(Some(1))
        );
        let list = [(0x10000, PAGE), (0x20000, 5), (0x30000, 5), (0x40000, 5)];
        assert_eq!(shape(&list).map(|s| s.gap()), Ok(Some(2)));
    }

    #[test]
    fn backwards_is_not_adjacent() {
        assert_eq!(
            shape(&[(0x20064, 100), (0x20000, 100)]).map(|s| s.gap()),
            Ok(Some(1))
        );
    }

    #[test]
    fn refused_arithmetic() {
        assert_eq!(shape(&[(0x10000, 0)]), Err(Errno::EINVAL));
        assert_eq!(shape(&[(u64::MAX, 1)]), Err(Errno::EINVAL));
        assert_eq!(shape(&[(0, u64::MAX), (0, 1)]), Err(Errno::EINVAL));
        let mut unknown = Sum::default();
        assert!(unknown.push(None, PAGE).is_ok());
        assert!(unknown.push(None, u64::MAX).is_err());
    }

    #[test]
    fn unknown_addresses_join_with_anything() {
        let mut sum = Sum::default();
        assert!(sum.push(Some(0x10000), 100).is_ok());
        assert!(sum.push(None, 100).is_ok());
        assert!(sum.push(Some(0x20005), 100).is_ok());
        assert_eq!(sum.shape().gap(), None);
        assert_eq!(sum.shape().segments(), 3);
    }
}

#[kernel::macros::kunit_tests(kfabric_pieces)]
mod piece_tests {
    use super::*;
    use crate::region::shape::Sum;

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
        let list = [(0x10000, PAGE + 100), (0x10064 + PAGE, PAGE)];
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
