// SPDX-License-Identifier: GPL-2.0

//! The memory of a registration or transfer: lists of kernel addresses, pages or mapped scatterlist entries, and
//! the sum of their lengths.
//!
//! Most segments of long lists start and end at page boundaries. These are counted without reading
//! their addresses: there is no gap between two of them, and they share no page.

mod kunit;

use super::shape::{
    page_offset,
    AddrRange,
    Shape,
    Sum, //
};
use crate::prelude::*;
use kernel::page::PAGE_SIZE;
use kfi_bindings::{
    kfi_helper_sg_span,
    kfi_helper_sg_whole, //
};

/// A non-empty C list and its count.
///
/// # Invariants
///
/// `first` points to `count` entries that stay as they are for `'a`; an entry after the end of
/// what is really there is only reached where the caller's `count` was wrong.
pub struct SegmentList<'a, T> {
    pub(super) first: NonNull<T>,
    pub(super) count: usize,
    _borrow: PhantomData<&'a T>,
}

impl<T> Clone for SegmentList<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SegmentList<'_, T> {}

impl<'a, T> SegmentList<'a, T> {
    /// Takes a C list.
    ///
    /// # Safety
    ///
    /// Unless it is null or an error pointer, `first` points to `count` entries that nobody changes for `'a`.
    pub(crate) unsafe fn from_raw(first: *const T, count: usize) -> Result<Self, Refusal> {
        let Some(first) = NonNull::new(first.cast_mut()) else {
            return Err(Refusal::new(Errno::EINVAL, c"list is NULL"));
        };
        if Errno::is_in(first.as_ptr()) {
            return Err(Refusal::new(Errno::EINVAL, c"list is an error pointer"));
        }
        if count == 0 {
            return Err(Refusal::new(Errno::EINVAL, c"list of 0 segments"));
        }
        // INVARIANT: `first` is neither null nor an error pointer. So it points to `count` entries
        // that nobody changes for `'a`, as the caller promises.
        Ok(Self {
            first,
            count,
            _borrow: PhantomData,
        })
    }

    /// Takes a slice, which isn't empty.
    pub(crate) fn from_slice(list: &'a [T]) -> Self {
        // INVARIANT: A slice is what a list must be.
        Self {
            first: NonNull::from(list).cast(),
            count: list.len(),
            _borrow: PhantomData,
        }
    }

    /// Returns the list as C has it.
    pub fn as_ptr(&self) -> *mut T {
        self.first.as_ptr()
    }

    /// Returns the number of entries, as the caller says.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns at most the first `limit` entries as a slice.
    pub(crate) fn entries(&self, limit: usize) -> &'a [T] {
        // No list in memory is longer than this, and no slice may be.
        const { assert!(size_of::<T>() > 0) };
        let most = isize::MAX.unsigned_abs() / size_of::<T>();
        // SAFETY: By the type invariant, `first` points to `count` entries that stay as they are
        // for
        // `'a`. `most` is the maximum length of a slice.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count.min(limit).min(most)) }
    }
}

/// A consumer's scatterlist that can be handed on to a device that takes addresses of the linear map, see
/// [`MrRequest::plain_list`](crate::MrRequest::plain_list).
///
/// # Invariants
///
/// - Each of its entries is a page that may be registered, by its address there.
/// - The last one is marked as the last.
pub struct PlainList<'a>(SegmentList<'a, scatterlist>);

impl<'a> PlainList<'a> {
    /// Takes a list that was found to be so.
    ///
    /// # Safety
    ///
    /// The type invariant holds for it.
    pub(super) unsafe fn of(list: SegmentList<'a, scatterlist>) -> Self {
        // INVARIANT: The caller promises that the list has these properties.
        Self(list)
    }

    /// Returns the list.
    pub fn list(&self) -> &SegmentList<'a, scatterlist> {
        &self.0
    }
}

/// Iterator over bio_vecs: where they start in memory, and their length.
pub(crate) struct Bvecs<'a> {
    list: slice::Iter<'a, bio_vec>,
    /// Where the next ones start, from `done` on.
    starts: [u64; BATCH],
    done: usize,
}

impl<'a> Bvecs<'a> {
    pub(super) fn new(list: &'a [bio_vec]) -> Self {
        Self {
            list: list.iter(),
            starts: [0; BATCH],
            done: BATCH,
        }
    }
}

impl Iterator for Bvecs<'_> {
    type Item = (Option<u64>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done == BATCH {
            let next = self.list.as_slice();
            let count = next.len().min(BATCH);
            // SAFETY: `next` has at least `count` bio_vecs, and `starts` has space for `BATCH`,
            // which is not less. The helper finds a bad page without reading it.
            unsafe {
                kfi_bindings::kfi_helper_bvec_starts(
                    next.as_ptr(),
                    u32::try_from(count).unwrap_or(0),
                    self.starts.as_mut_ptr(),
                )
            };
            self.done = 0;
        }
        let bvec = self.list.next()?;
        let start = *self.starts.get(self.done)?;
        self.done += 1;
        Some(((start != u64::MAX).then_some(start), u64::from(bvec.bv_len)))
    }
}

/// Number of segments that one call of a C helper reads.
const MAX_BATCH: u32 = 16;
const BATCH: usize = index(MAX_BATCH);

impl<'a> SegmentList<'a, scatterlist> {
    /// Returns the device address and length in bytes of at most `limit` entries; an error if the
    /// list ends early.
    pub(super) fn spans(&self, limit: usize) -> Spans<'a> {
        // INVARIANT: The list has `count` entries that stay as they are for `'a`.
        Spans {
            next: self.as_ptr(),
            found: Default::default(),
            filled: 0,
            at: 0,
            index: 0,
            count: self.count().min(limit),
            _borrow: PhantomData,
        }
    }

    /// Returns the device address and length of the first entry.
    #[inline]
    pub(super) fn first_span(&self) -> kfi_helper_sg_span {
        // SAFETY: By the invariant of this type there is an entry.
        unsafe { kfi_bindings::kfi_helper_sg_first(self.as_ptr()) }
    }

    /// Returns the range of device addresses of each entry, for a list that was found valid.
    pub fn device_spans(&self) -> impl Iterator<Item = Result<AddrRange, Refusal>> + 'a {
        self.spans(usize::MAX)
            .map(|span| span.and_then(|(start, len)| AddrRange::new(start, len)))
    }
}

/// Iterator over the entries of a scatterlist: device address and length in bytes.
///
/// # Invariants
///
/// `next` is null or an entry of a list that stays as it is for `'a`; from there on, no more than
/// `count - index` entries count, less those that are in `found` already.
pub(crate) struct Spans<'a> {
    next: *mut scatterlist,
    found: [kfi_helper_sg_span; BATCH],
    filled: usize,
    at: usize,
    index: usize,
    pub(super) count: usize,
    _borrow: PhantomData<&'a scatterlist>,
}

impl Spans<'_> {
    /// Takes the next entries, up to the first that doesn't start and end at page boundaries.
    /// Returns `None` if there is none before that one.
    pub(super) fn next_whole(&mut self) -> Option<kfi_helper_sg_whole> {
        let left = widen(self.count - self.index);
        let mut whole = kfi_helper_sg_whole::default();
        // SAFETY: By the type invariant, `next` is null or an entry, and at most `left` entries
        // from there on count. `whole` is a local.
        unsafe { kfi_bindings::kfi_helper_sg_whole(&mut self.next, left, &mut whole) };
        self.index += index(whole.count);
        (whole.count > 0).then_some(whole)
    }

    /// Returns some of the next entries; an error if the list ends early.
    pub(super) fn next_found(&mut self) -> Option<Result<&[kfi_helper_sg_span], Refusal>> {
        if self.index == self.count {
            return None;
        }
        if let Err(refusal) = self.find() {
            self.index = self.count;
            return Some(Err(refusal));
        }
        (self.index, self.at) = (self.index + self.filled, self.filled);
        self.found.get(..self.filled).map(Ok)
    }

    /// Looks at the next entries.
    fn find(&mut self) -> Result<(), Refusal> {
        let left = widen(self.count - self.index);
        // SAFETY: By the type invariant, `next` is null or an entry, and at most `left` entries
        // from there on count. `found` has space for `MAX_BATCH`.
        let filled = unsafe {
            kfi_bindings::kfi_helper_sg_spans(
                &mut self.next,
                left,
                self.found.as_mut_ptr(),
                MAX_BATCH,
            )
        };
        (self.filled, self.at) = (index(filled), 0);
        if filled == 0 {
            return Err(Refusal::new(Errno::EINVAL, c"list ends before count").at(self.index));
        }
        Ok(())
    }
}

impl Iterator for Spans<'_> {
    type Item = Result<(u64, u64), Refusal>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.count {
            return None;
        }
        if self.at == self.filled {
            if let Err(refusal) = self.find() {
                self.index += 1;
                return Some(Err(refusal));
            }
        }
        let span = self.found.get(self.at)?;
        self.at += 1;
        self.index += 1;
        Some(Ok((span.addr, u64::from(span.len))))
    }
}

const PAGE: u64 = widen(PAGE_SIZE);

/// An entry of a list.
pub(super) trait Segment: Sized {
    /// Returns an address that has the segment's offset in a page, and the length in bytes.
    fn place(&self) -> (u64, u64);

    /// Returns how many of the first entries are a page each, if that is quick to find.
    #[inline]
    fn first_pages(_list: &[Self]) -> usize {
        0
    }

    /// Adds entries whose neighbours matter, by their addresses.
    fn push(sum: &mut Sum, list: &[Self]) -> Result<(), Refusal>;
}

/// Checks whether a segment starts and ends at page boundaries.
#[inline]
fn is_whole<T: Segment>(segment: &T) -> bool {
    let (start, len) = segment.place();
    page_offset(start | len) == 0 && len != 0 && start.checked_add(len).is_some()
}

/// Checks whether a segment is a page.
pub(super) fn is_page<T: Segment>(segment: &T) -> bool {
    is_whole(segment) && segment.place().1 == PAGE
}

/// Returns how many of the first entries are whole, and their bytes together.
#[inline]
fn first_whole<T: Segment>(list: &[T]) -> (usize, u64) {
    let pages = T::first_pages(list);
    if pages > 2 {
        return (pages, widen(pages).saturating_mul(PAGE));
    }
    let mut bytes: u64 = 0;
    let whole = list.iter().take_while(|segment| {
        let is_whole = is_whole(*segment);
        if is_whole {
            bytes = bytes.saturating_add(segment.place().1);
        }
        is_whole
    });
    (whole.count(), bytes)
}

/// Adds the next entries of a scatterlist, which are whole.
pub(super) fn add_whole(sum: &mut Sum, whole: &kfi_helper_sg_whole) -> Result<(), Refusal> {
    let [first, last] = [&whole.first, &whole.last].map(slice::from_ref);
    Segment::push(sum, first)?;
    let Some(inner) = whole.count.checked_sub(2) else {
        return Ok(());
    };
    let bytes = whole.bytes - u64::from(whole.first.len) - u64::from(whole.last.len);
    if inner > 0 && !sum.push_whole(index(inner), bytes) {
        let refusal = Refusal::new(Errno::EINVAL, c"sum of lengths overflows");
        return Err(refusal.at(sum.shape().segments()));
    }
    Segment::push(sum, last)
}

/// Adds the next entries of a list.
#[inline]
pub(super) fn add<T: Segment>(sum: &mut Sum, mut list: &[T]) -> Result<(), Refusal> {
    while !list.is_empty() {
        let (whole, bytes) = first_whole(list);
        let others = || {
            list.iter()
                .take_while(|segment| !is_whole(*segment))
                .count()
        };
        let here = if whole > 0 { whole } else { others() };
        let (stretch, rest) = list.split_at_checked(here).unwrap_or((list, &[]));
        match stretch {
            // The neighbours of the ends may not be whole.
            [first, inner @ .., last] if whole > 2 && bytes < u64::MAX => {
                T::push(sum, slice::from_ref(first))?;
                if !sum.push_whole(inner.len(), bytes - first.place().1 - last.place().1) {
                    T::push(sum, inner)?;
                }
                T::push(sum, slice::from_ref(last))?;
            }
            _ => T::push(sum, stretch)?,
        }
        list = rest;
    }
    Ok(())
}

impl Segment for kvec {
    #[inline]
    fn place(&self) -> (u64, u64) {
        (widen(self.iov_base.addr()), widen(self.iov_len))
    }

    fn push(sum: &mut Sum, list: &[Self]) -> Result<(), Refusal> {
        list.iter().try_for_each(|kvec| {
            let (base, len) = kvec.place();
            sum.push((base != 0).then_some(base), len)
        })
    }
}

impl Segment for bio_vec {
    #[inline]
    fn place(&self) -> (u64, u64) {
        (u64::from(self.bv_offset), u64::from(self.bv_len))
    }

    #[inline]
    fn first_pages(list: &[Self]) -> usize {
        let is_page = |bvec: &&Self| bvec.bv_offset == 0 && widen_u32(bvec.bv_len) == PAGE;
        list.iter().take_while(is_page).count()
    }

    fn push(sum: &mut Sum, list: &[Self]) -> Result<(), Refusal> {
        Bvecs::new(list).try_for_each(|(start, len)| sum.push(start, len))
    }
}

impl Segment for kfi_helper_sg_span {
    #[inline]
    fn place(&self) -> (u64, u64) {
        (self.addr, u64::from(self.len))
    }

    fn push(sum: &mut Sum, list: &[Self]) -> Result<(), Refusal> {
        list.iter().try_for_each(|span| match span.len {
            0 => {
                let refusal = Refusal::new(
                    Errno::EINVAL,
                    c"entry has no DMA length: not mapped, or empty",
                );
                Err(refusal.at(sum.shape().segments()))
            }
            len => sum.push(Some(span.addr), u64::from(len)),
        })
    }
}

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
                [first, .., last] => [first, last].into_iter().all(is_page),
                _ => false,
            },
            Self::Sgl(list) => is_page(&list.first_span()),
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
            Self::Kvec(list) => add(&mut sum, list.entries(limit))?,
            Self::Bvec(list) => add(&mut sum, list.entries(limit))?,
            Self::Sgl(list) => {
                let mut spans = list.spans(limit);
                loop {
                    if let Some(whole) = spans.next_whole() {
                        add_whole(&mut sum, &whole)?;
                    } else if let Some(next) = spans.next_found() {
                        add(&mut sum, next?)?;
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

impl Source<'_> {
    /// Calls `f` with the index, the kernel address and the length of each segment. A bio_vec or an entry of a
    /// scatterlist has no kernel address.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there are more than `limit` segments.
    /// - The error of a segment, or of `f`, with the index of the segment.
    #[inline]
    pub(crate) fn each(
        &self,
        limit: usize,
        mut f: impl FnMut(usize, Option<u64>, u64) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if self.count() > limit {
            let refusal = Refusal::new(Errno::EINVAL, c"more segments than iov_limit");
            return Err(refusal.value(widen(self.count())));
        }
        let mut one = |index, start, len| f(index, start, len).map_err(|e: Refusal| e.at(index));
        match self {
            Self::Kvec(list) => {
                let mut list = list.entries(limit).iter().enumerate();
                list.try_for_each(|(index, kvec)| {
                    let base = kvec.iov_base.addr();
                    one(
                        index,
                        (base != 0).then_some(widen(base)),
                        widen(kvec.iov_len),
                    )
                })
            }
            Self::Bvec(list) => {
                let mut list = list.entries(limit).iter().enumerate();
                list.try_for_each(|(index, bv)| one(index, None, bv.bv_len.into()))
            }
            Self::Sgl(list) => {
                let mut list = list.spans(limit).enumerate();
                list.try_for_each(|(index, span)| {
                    let (_, len) = span.map_err(|refusal| refusal.at(index))?;
                    one(index, None, len)
                })
            }
        }
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
