// SPDX-License-Identifier: GPL-2.0

//! From kernel addresses and bio_vecs to pages, refusing what must not be registered.

use crate::{
    region::{
        judge::{
            Judge,
            Refused,
            Use, //
        },
        shape::Span,
        source::Source, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    page::{
        BorrowedPage,
        PAGE_SIZE, //
    },
    prelude::*, //
};
use kfi_bindings::{
    bio_vec,
    kvec, //
};

/// The bytes of one page that are the region's, as long as the request is there.
pub struct PageSlice<'a> {
    /// The page.
    pub page: BorrowedPage<'a>,
    /// Where in the page it starts, in bytes.
    pub offset: usize,
    /// Its length in bytes; `offset + len` is at most a page.
    pub len: usize,
}

impl<'a> Source<'a> {
    /// Goes through the pages in the order of the region. Fails with `EFAULT` at the first memory
    /// that may not be registered. A scatterlist has been mapped by its owner, and gives none.
    ///
    /// Any context.
    pub(crate) fn page_slices(&self, memory: Use) -> PageSlices<'_> {
        PageSlices {
            source: self,
            judge: Judge::new(memory),
            index: 0,
            current: Segment::End,
        }
    }
}

/// Checks that the memory at an address of the linear map may be registered, which is what the
/// scatterlist's entry with this index names on some devices; `EFAULT` if not. May sleep.
pub(crate) fn check_linear(memory: Use, index: usize, span: Span) -> Result<(), Refusal> {
    let start = usize::try_from(span.start()).map_err(|_| Errno::EINVAL)?;
    let phys = frame_at(index, start)? * PAGE + span.start() % PAGE;
    Judge::new(memory)
        .addresses(phys, span.bytes())
        .map_err(|no| {
            let at = no.good * PAGE + span.start();
            Refusal::new(Errno::EFAULT, no.why).at(index).value(at)
        })
}

const PAGE: u64 = widen(PAGE_SIZE);

/// Iterator of [`MrRequest::page_slices`](crate::MrRequest::page_slices).
pub struct PageSlices<'a> {
    source: &'a Source<'a>,
    judge: Judge,
    /// Index of the next segment.
    index: usize,
    current: Segment,
}

/// What is left of the current segment.
enum Segment {
    /// Nothing.
    End,
    /// Kernel addresses.
    Virtual { addr: usize, len: usize },
    /// Pages: the current one's frame, the offset in it, and the bytes left.
    Pages {
        frame: u64,
        offset: usize,
        len: usize,
    },
}

fn refused(index: usize, why: &'static CStr, value: usize) -> Refusal {
    Refusal::new(Errno::EFAULT, why)
        .at(index)
        .value(widen(value))
}

/// The page frame behind a kernel address.
fn frame_at(index: usize, addr: usize) -> Result<u64, Refusal> {
    let mut frame = 0;
    // SAFETY: The helper takes any address and reads page tables only.
    match unsafe {
        kfi_bindings::kfi_helper_virt_pfn(core::ptr::without_provenance(addr), &mut frame)
    } {
        true => Ok(frame),
        false => Err(refused(index, c"no memory that may be registered", addr)),
    }
}

impl Segment {
    fn of_kvec(index: usize, kvec: &kvec) -> Result<Self, Refusal> {
        let base = kvec.iov_base.cast_const();
        if base.is_null() {
            return Err(refused(index, c"address is NULL", 0));
        }
        // SAFETY: Only compares addresses; the range was found not to wrap.
        if unsafe { kfi_bindings::kfi_helper_on_stack(base, kvec.iov_len) } {
            return Err(refused(index, c"memory of the caller's stack", base.addr()));
        }
        Ok(Self::Virtual {
            addr: base.addr(),
            len: kvec.iov_len,
        })
    }

    fn of_bvec(index: usize, bvec: &bio_vec) -> Result<Self, Refusal> {
        let mut frame = 0;
        // SAFETY: Both pointers are valid for the call; a bad page is found out without being read.
        if !unsafe { kfi_bindings::kfi_helper_bvec_pfn(bvec, &mut frame) } {
            return Err(refused(
                index,
                c"no page of this machine",
                bvec.bv_page.addr(),
            ));
        }
        // The helper went to the page that the offset leads to.
        let offset = usize::try_from(bvec.bv_offset).map_err(|_| Errno::EINVAL)? % PAGE_SIZE;
        let len = usize::try_from(bvec.bv_len).map_err(|_| Errno::EINVAL)?;
        Ok(Self::Pages { frame, offset, len })
    }

    /// Takes the next slice off the segment: the page frame, the offset in it, the length, and what
    /// to name if the page may not be registered.
    fn next(&mut self, index: usize) -> Result<Option<(u64, usize, usize, u64)>, Refusal> {
        match *self {
            Self::End | Self::Virtual { len: 0, .. } | Self::Pages { len: 0, .. } => Ok(None),
            Self::Virtual { addr, len } => {
                let offset = addr % PAGE_SIZE;
                let here = len.min(PAGE_SIZE - offset);
                let frame = frame_at(index, addr)?;
                *self = Self::Virtual {
                    // The range does not wrap, but may end with the address space.
                    addr: addr.wrapping_add(here),
                    len: len - here,
                };
                Ok(Some((frame, offset, here, widen(addr))))
            }
            Self::Pages { frame, offset, len } => {
                let here = len.min(PAGE_SIZE - offset);
                *self = Self::Pages {
                    frame: frame.saturating_add(1),
                    offset: 0,
                    len: len - here,
                };
                Ok(Some((
                    frame,
                    offset,
                    here,
                    frame.saturating_mul(PAGE).saturating_add(widen(offset)),
                )))
            }
        }
    }
}

impl<'a> PageSlices<'a> {
    /// Starts on the segment with index `self.index`, if there is one.
    fn advance(&mut self) -> Result<bool, Refusal> {
        let index = self.index;
        let segment = match self.source {
            Source::Kvec(list) => list
                .entries(usize::MAX)
                .get(index)
                .map(|kvec| Segment::of_kvec(index, kvec)),
            Source::Bvec(list) => list
                .entries(usize::MAX)
                .get(index)
                .map(|bvec| Segment::of_bvec(index, bvec)),
            Source::Sgl(_) => None,
        };
        let Some(segment) = segment else {
            return Ok(false);
        };
        self.current = segment?;
        self.index += 1;
        Ok(true)
    }

    fn try_next(&mut self) -> Result<Option<PageSlice<'a>>, Refusal> {
        loop {
            // The current segment is the one before `self.index`.
            let index = self.index.saturating_sub(1);
            if let Some((frame, offset, len, value)) = self.current.next(index)? {
                self.judge.pages(frame, 1).map_err(|Refused { why, .. }| {
                    Refusal::new(Errno::EFAULT, why).at(index).value(value)
                })?;
                // SAFETY: The frame has just been found to have a page.
                let page = unsafe { kfi_bindings::kfi_helper_page(frame) };
                let page = NonNull::new(page).ok_or(Errno::EFAULT)?;
                // SAFETY: The page is there, and by the contract of kfi_mr(3) the memory stays at
                // least as long as the call that the request is made by.
                let page = unsafe { BorrowedPage::from_raw(page) };
                return Ok(Some(PageSlice { page, offset, len }));
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}

impl<'a> Iterator for PageSlices<'a> {
    type Item = Result<PageSlice<'a>, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        self.try_next().transpose()
    }
}
