// SPDX-License-Identifier: GPL-2.0

//! Adding up lists.
//!
//! Segments that start and end where pages do, as most of long lists do, are counted without a look
//! where they are: whatever is beside them, there is no gap between two of them, and they share no
//! page.

mod kunit;

use crate::{
    region::{
        bvecs::Bvecs,
        shape::{
            page_offset,
            Sum, //
        }, //
    },
    support::{
        errno::Errno,
        num::{
            index,
            widen,
            widen_u32, //
        },
        refusal::Refusal, //
    }, //
};
use core::slice;
use kernel::page::PAGE_SIZE;
use kfi_bindings::{
    bio_vec,
    kfi_helper_sg_span,
    kfi_helper_sg_whole,
    kvec, //
};

const PAGE: u64 = widen(PAGE_SIZE);

/// An entry of a list.
pub(super) trait Segment: Sized {
    /// An address that is as far into its page as the segment begins, and the length in bytes.
    fn place(&self) -> (u64, u64);

    /// How many of the first entries are a page each, where that is found out quickly.
    #[inline]
    fn first_pages(_list: &[Self]) -> usize {
        0
    }

    /// Adds entries whose neighbours matter, by their addresses.
    fn push(sum: &mut Sum, list: &[Self]) -> Result<(), Refusal>;
}

/// Does a segment start and end where pages do?
#[inline]
fn is_whole<T: Segment>(segment: &T) -> bool {
    let (start, len) = segment.place();
    page_offset(start | len) == 0 && len != 0 && start.checked_add(len).is_some()
}

/// Is a segment a page?
pub(super) fn is_page<T: Segment>(segment: &T) -> bool {
    is_whole(segment) && segment.place().1 == PAGE
}

/// How many of the first entries are whole, and how many bytes they have together.
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
            // What is beside the ends may not be whole.
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
