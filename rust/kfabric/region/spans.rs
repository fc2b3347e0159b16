// SPDX-License-Identifier: GPL-2.0

//! The entries of a mapped scatterlist: device addresses and lengths.

use crate::{
    region::{
        list::SegmentList,
        shape::AddrRange, //
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
use core::marker::PhantomData;
use kfi_bindings::{
    kfi_helper_sg_span,
    kfi_helper_sg_whole,
    scatterlist, //
};

/// So many segments are looked at at once.
const MAX_BATCH: u32 = 16;
const BATCH: usize = index(MAX_BATCH);

impl<'a> SegmentList<'a, scatterlist> {
    /// Device address and length in bytes of at most `limit` entries; an error where the list ends
    /// early.
    pub(super) fn spans(&self, limit: usize) -> Spans<'a> {
        // INVARIANT: By that of this type.
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

    /// What the first entry says.
    #[inline]
    pub(super) fn first_span(&self) -> kfi_helper_sg_span {
        // SAFETY: By the invariant of this type there is an entry.
        unsafe { kfi_bindings::kfi_helper_sg_first(self.as_ptr()) }
    }

    /// Each entry's range of device addresses, for a list that was found valid before.
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
    count: usize,
    _borrow: PhantomData<&'a scatterlist>,
}

impl Spans<'_> {
    /// As many of the next entries as start and end where pages do; `None` if the next one doesn't.
    pub(super) fn next_whole(&mut self) -> Option<kfi_helper_sg_whole> {
        let left = widen(self.count - self.index);
        let mut whole = kfi_helper_sg_whole::default();
        // SAFETY: By the type invariant `next` is an entry, or null, and so many count.
        unsafe { kfi_bindings::kfi_helper_sg_whole(&mut self.next, left, &mut whole) };
        self.index += index(whole.count);
        (whole.count > 0).then_some(whole)
    }

    /// The next entries, some of them; an error where the list ends early.
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
