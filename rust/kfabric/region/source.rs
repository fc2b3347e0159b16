// SPDX-License-Identifier: GPL-2.0

//! Where the memory of a registration is: kernel addresses, pages, or a mapped scatterlist.

use crate::{
    region::{
        bvecs::Bvecs,
        shape::{
            page_offset,
            Shape,
            Span, //
        },
        tally, //
    },
    support::{
        errno::Errno,
        num::{
            index,
            widen, //
        },
        refusal::Refusal, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull,
    slice, //
};
use kfi_bindings::{
    bio_vec,
    kfi_helper_sg_span,
    kfi_helper_sg_whole,
    kvec,
    scatterlist, //
};

/// A consumer's list, borrowed for the length of a call.
///
/// It is never read beyond its end, nor beyond the limit that it is read with.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Kernel addresses (`KFI_KVEC`).
    Kvec(List<'a, kvec>),
    /// Pages (`KFI_BVEC`).
    Bvec(List<'a, bio_vec>),
    /// Addresses of the device (`KFI_SGL`).
    Sgl(List<'a, scatterlist>),
}

/// A shorter list isn't taken for one of pages: it is counted as quickly.
const MANY: usize = 3;

/// A non-empty C list and its count.
///
/// # Invariants
///
/// `first` points to `count` entries that stay as they are for `'a`; an entry after the end of
/// what is really there is only reached where the caller's `count` was wrong.
pub struct List<'a, T> {
    first: NonNull<T>,
    count: usize,
    _borrow: PhantomData<&'a T>,
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<'a, T> List<'a, T> {
    /// Takes a C list.
    ///
    /// # Safety
    ///
    /// Unless it is null, `first` points to `count` entries that nobody changes for `'a`.
    pub(crate) unsafe fn from_raw(first: *const T, count: usize) -> Result<Self, Refusal> {
        let Some(first) = NonNull::new(first.cast_mut()) else {
            return Err(Refusal::new(Errno::EINVAL, c"list is NULL"));
        };
        if count == 0 {
            return Err(Refusal::new(Errno::EINVAL, c"list of 0 segments"));
        }
        // INVARIANT: By the requirements of this function.
        Ok(Self {
            first,
            count,
            _borrow: PhantomData,
        })
    }

    /// At most the first `limit` entries, as a slice.
    pub(crate) fn entries(&self, limit: usize) -> &'a [T] {
        // No list in memory is longer than this, and no slice may be.
        const { assert!(size_of::<T>() > 0) };
        let most = isize::MAX.unsigned_abs() / size_of::<T>();
        // SAFETY: By the invariant of this type.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count.min(limit).min(most)) }
    }
}

impl<'a> Source<'a> {
    /// One buffer.
    ///
    /// `kvec` is where the caller keeps it, since a list is borrowed.
    pub(crate) fn buffer(kvec: &'a kvec) -> Result<Self, Refusal> {
        if kvec.iov_base.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"buf is NULL"));
        }
        Ok(Self::kvecs(slice::from_ref(kvec)))
    }

    /// Kernel addresses from Rust.
    pub(crate) fn kvecs(list: &'a [kvec]) -> Self {
        Self::Kvec(List {
            // INVARIANT: A slice is what a list must be.
            first: NonNull::from(list).cast(),
            count: list.len(),
            _borrow: PhantomData,
        })
    }

    /// How many segments the caller says there are.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Kvec(list) => list.count,
            Self::Bvec(list) => list.count,
            Self::Sgl(list) => list.count,
        }
    }

    /// The shape that the list has if each segment is a page; `None` if it has few, or if one that is
    /// looked at is none.
    pub(crate) fn shape_of_pages(&self, limit: usize) -> Option<Shape> {
        let may_be = match self {
            Self::Kvec(_) => false,
            Self::Bvec(list) => match list.entries(limit) {
                [first, .., last] => [first, last].into_iter().all(tally::is_page),
                _ => false,
            },
            Self::Sgl(list) => list.begins_with_page(),
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
            Self::Sgl(_) => self.shape_of_any(limit),
        }
    }

    #[inline(never)]
    fn shape_of_any(&self, limit: usize) -> Result<Shape, Refusal> {
        let mut shape = Shape::default();
        match self {
            Self::Kvec(list) => tally::add(&mut shape, list.entries(limit))?,
            Self::Bvec(list) => tally::add(&mut shape, list.entries(limit))?,
            Self::Sgl(list) => {
                let mut spans = list.spans(limit);
                loop {
                    if let Some(whole) = spans.next_whole() {
                        tally::add_whole(&mut shape, &whole)?;
                    } else if let Some(next) = spans.next_found() {
                        tally::add(&mut shape, next?)?;
                    } else {
                        break;
                    }
                }
            }
        }
        Ok(shape)
    }

    /// Address and length of at most `limit` segments; no address where there is none.
    pub(crate) fn segments(&self, limit: usize) -> Segments<'a> {
        match self {
            Self::Kvec(list) => Segments::Kvec(list.entries(limit).iter()),
            Self::Bvec(list) => Segments::Bvec(Bvecs::new(list.entries(limit))),
            Self::Sgl(list) => Segments::Sgl(list.spans(limit)),
        }
    }
}

/// Iterator of [`Source::segments`].
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(crate) enum Segments<'a> {
    Kvec(slice::Iter<'a, kvec>),
    Bvec(Bvecs<'a>),
    Sgl(Spans<'a>),
}

impl Iterator for Segments<'_> {
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

/// So many segments are looked at at once.
const MAX_BATCH: u32 = 16;
const BATCH: usize = index(MAX_BATCH);

impl<'a> List<'a, scatterlist> {
    /// Device address and length in bytes of at most `limit` entries; an error where the list ends
    /// early.
    fn spans(&self, limit: usize) -> Spans<'a> {
        // INVARIANT: By that of this type.
        Spans {
            next: self.first.as_ptr(),
            found: Default::default(),
            filled: 0,
            at: 0,
            index: 0,
            count: self.count.min(limit),
            _borrow: PhantomData,
        }
    }

    /// Is the first entry a page?
    fn begins_with_page(&self) -> bool {
        let (mut first, mut span) = (self.as_ptr(), kfi_helper_sg_span::default());
        // SAFETY: By the invariant of this type there is an entry; there is room for one.
        unsafe { kfi_bindings::kfi_helper_sg_spans(&mut first, 1, &mut span, 1) };
        tally::is_page(&span)
    }

    /// Each entry's range of device addresses, for a list that was found valid before.
    pub fn device_spans(&self) -> impl Iterator<Item = Result<Span, Refusal>> + 'a {
        self.spans(usize::MAX)
            .map(|span| span.and_then(|(start, len)| Span::new(start, len)))
    }

    /// The list as C has it.
    pub fn as_ptr(&self) -> *mut scatterlist {
        self.first.as_ptr()
    }

    /// How many entries count.
    pub fn count(&self) -> usize {
        self.count
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
    count: usize,
    _borrow: PhantomData<&'a scatterlist>,
}

impl Spans<'_> {
    /// As many of the next entries as start and end where pages do; `None` if the next one doesn't.
    fn next_whole(&mut self) -> Option<kfi_helper_sg_whole> {
        let left = widen(self.count - self.index);
        let mut whole = kfi_helper_sg_whole::default();
        // SAFETY: By the type invariant `next` is an entry, or null, and so many count.
        unsafe { kfi_bindings::kfi_helper_sg_whole(&mut self.next, left, &mut whole) };
        self.index += index(whole.count);
        (whole.count > 0).then_some(whole)
    }

    /// The next entries, some of them; an error where the list ends early.
    fn next_found(&mut self) -> Option<Result<&[kfi_helper_sg_span], Refusal>> {
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
        // SAFETY: By the type invariant `next` is an entry, or null, and so many count; there is room
        // for so many.
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
