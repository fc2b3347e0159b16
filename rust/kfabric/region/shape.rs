// SPDX-License-Identifier: GPL-2.0

//! The arithmetic of regions: segments, pages and gaps. Pure; knows no memory.

mod kunit;

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

    /// First address.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// Length in bytes.
    pub const fn bytes(self) -> u64 {
        self.len
    }

    /// First address after it.
    pub const fn end(self) -> u64 {
        self.start + self.len
    }
}

/// Offset of an address in its page.
pub(crate) const fn page_offset(addr: u64) -> u64 {
    addr & (widen(PAGE_SIZE) - 1)
}

/// How many pages a range touches.
pub(crate) const fn pages(offset: u64, len: u64) -> u64 {
    // The sum can't overflow by more than a page: `len` counts bytes that exist in memory.
    offset.saturating_add(len).div_ceil(widen(PAGE_SIZE))
}

/// What a whole list of segments amounts to.
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
    /// Adds a segment. `start` is `None` where the address is not known (and will be refused when
    /// memory is looked at): such a segment joins with anything.
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

    /// Adds so many segments of so many bytes together, all of which start and end where pages do, as
    /// the one before them does, and the one behind them: where they are is no matter. Returns
    /// `false`, and adds nothing, if the sum of lengths overflows.
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

    /// What has been added.
    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }
}

impl Shape {
    /// That of one segment, as [`Sum::push`] adds it.
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

    /// That of a list in which each of so many segments, not none, is a page; `None` if that is too long.
    pub(super) fn of_pages(count: usize) -> Option<Self> {
        let mut sum = Sum::default();
        let bytes = widen(count).checked_mul(widen(PAGE_SIZE))?;
        sum.push_whole(count, bytes).then_some(sum.shape)
    }

    /// Number of segments.
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// How many pages the region touches, each counted once where neighbours share it.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// The first segment that does not follow on from the one before it: their joint is not at a
    /// page boundary on both sides, and they are not adjacent.
    pub const fn gap(&self) -> Option<usize> {
        self.gap
    }
}
