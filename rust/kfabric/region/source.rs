// SPDX-License-Identifier: GPL-2.0

//! Where the memory of a registration is: kernel addresses, pages, or a mapped scatterlist.

use super::{
    segment_list::{
        self,
        Bvecs,
        SegmentList,
        Spans, //
    },
    shape::{
        page_offset,
        Shape,
        Sum, //
    }, //
};
use crate::prelude::*;
use core::slice;
use kfi_bindings::{
    bio_vec,
    kvec,
    scatterlist, //
};

/// A consumer's list, borrowed for the length of a call.
///
/// It is never read beyond its end, nor beyond the limit that it is read with.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Kernel addresses (`KFI_KVEC`).
    Kvec(SegmentList<'a, kvec>),
    /// Pages (`KFI_BVEC`).
    Bvec(SegmentList<'a, bio_vec>),
    /// Addresses of the device (`KFI_SGL`).
    Sgl(SegmentList<'a, scatterlist>),
}

/// A shorter list isn't taken for one of pages: it is counted as quickly.
const MANY: usize = 3;

impl<'a> Source<'a> {
    /// Makes a list of one buffer. The caller keeps `kvec`, since lists are borrowed.
    pub(crate) fn buffer(kvec: &'a kvec) -> Result<Self, Refusal> {
        if kvec.iov_base.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"buf is NULL"));
        }
        Ok(Self::kvecs(slice::from_ref(kvec)))
    }

    /// Makes a list of kernel addresses from Rust.
    pub(crate) fn kvecs(list: &'a [kvec]) -> Self {
        Self::Kvec(SegmentList::from_slice(list))
    }

    /// Returns the number of segments, as the caller says.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Kvec(list) => list.count,
            Self::Bvec(list) => list.count,
            Self::Sgl(list) => list.count,
        }
    }

    /// Returns the shape that the list has if each segment is a page. Returns `None` if the list
    /// has fewer than [`MANY`] segments or more than `limit`, or if a segment that this reads is no
    /// page.
    pub(crate) fn shape_of_pages(&self, limit: usize) -> Option<Shape> {
        let may_be = match self {
            Self::Kvec(_) => false,
            Self::Bvec(list) => match list.entries(limit) {
                [first, .., last] => [first, last].into_iter().all(segment_list::is_page),
                _ => false,
            },
            Self::Sgl(list) => segment_list::is_page(&list.first_span()),
        };
        let count = self.count();
        let takes = may_be && (MANY..=limit).contains(&count);
        takes.then(|| Shape::of_pages(count))?
    }

    /// Goes through at most `limit` segments by index.
    #[inline(always)]
    pub(crate) fn shape(&self, limit: usize) -> Result<Shape, Refusal> {
        // Lists of one segment are what most are.
        match self {
            Self::Kvec(list) => match list.entries(limit) {
                [one] => {
                    let base = widen(one.iov_base.addr());
                    Shape::of_one((base != 0).then_some(base), widen(one.iov_len))
                }
                _ => self.shape_of_any(limit),
            },
            Self::Bvec(list) => match list.entries(limit) {
                // Whether that is a page of this machine is found out when memory is looked at.
                [one] if page_offset(u64::from(one.bv_offset)) == 0 => {
                    Shape::of_one(None, u64::from(one.bv_len))
                }
                _ => self.shape_of_any(limit),
            },
            Self::Sgl(list) if list.count().min(limit) == 1 => {
                let one = list.first_span();
                Shape::of_one(Some(one.addr), u64::from(one.len))
            }
            Self::Sgl(_) => self.shape_of_any(limit),
        }
    }

    #[inline(never)]
    fn shape_of_any(&self, limit: usize) -> Result<Shape, Refusal> {
        let mut sum = Sum::default();
        match self {
            Self::Kvec(list) => segment_list::add(&mut sum, list.entries(limit))?,
            Self::Bvec(list) => segment_list::add(&mut sum, list.entries(limit))?,
            Self::Sgl(list) => {
                let mut spans = list.spans(limit);
                loop {
                    if let Some(whole) = spans.next_whole() {
                        segment_list::add_whole(&mut sum, &whole)?;
                    } else if let Some(next) = spans.next_found() {
                        segment_list::add(&mut sum, next?)?;
                    } else {
                        break;
                    }
                }
            }
        }
        Ok(*sum.shape())
    }

    /// Returns the address and length of each segment. A NULL buffer and a page without memory have no
    /// address.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there are more than `limit` segments.
    pub(crate) fn segments(&self, limit: usize) -> Result<SegmentIter<'a>, Refusal> {
        let (count, segments) = match self {
            Self::Kvec(list) => (list.count, SegmentIter::Kvec(list.entries(limit).iter())),
            Self::Bvec(list) => (
                list.count,
                SegmentIter::Bvec(Bvecs::new(list.entries(limit))),
            ),
            Self::Sgl(list) => (list.count, SegmentIter::Sgl(list.spans(limit))),
        };
        if count > limit {
            let refusal = Refusal::new(Errno::EINVAL, c"more segments than iov_limit");
            return Err(refusal.value(widen(count)));
        }
        Ok(segments)
    }
}

/// Iterator of [`Source::segments`].
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(crate) enum SegmentIter<'a> {
    Kvec(slice::Iter<'a, kvec>),
    Bvec(Bvecs<'a>),
    Sgl(Spans<'a>),
}

impl Iterator for SegmentIter<'_> {
    type Item = Result<(Option<u64>, u64), Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Kvec(list) => list.next().map(|kvec| {
                let base = kvec.iov_base.addr();
                Ok(((base != 0).then_some(widen(base)), widen(kvec.iov_len)))
            }),
            Self::Bvec(list) => list.next().map(Ok),
            Self::Sgl(list) => list
                .next()
                .map(|span| span.map(|(start, len)| (Some(start), len))),
        }
    }
}
