// SPDX-License-Identifier: GPL-2.0

//! The arithmetic of regions: segments, pages and gaps. Pure; knows no memory.

use crate::support::{
    errno::Errno,
    num::widen,
    refusal::Refusal, //
};
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
    len: u64,
    pages: u64,
    gap: Option<usize>,
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
