// SPDX-License-Identifier: GPL-2.0

//! From kernel addresses and bio_vecs to pages, refusing what must not be registered.

use crate::{
    errno::Errno,
    num::widen,
    refusal::Refusal,
    source::Source, //
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
    kvec,
    page, //
};

/// A stretch of memory inside one page.
pub struct Piece {
    /// The page. Whoever registers memory keeps it until the region is closed, which is longer
    /// than anything here lives.
    pub page: BorrowedPage<'static>,
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
    pub(crate) fn pieces(&self, writes: bool) -> Pieces<'_> {
        Pieces {
            source: self,
            writes,
            index: 0,
            current: Segment::End,
        }
    }
}

/// Iterator of [`MrRequest::pieces`](crate::MrRequest::pieces).
pub struct Pieces<'a> {
    source: &'a Source<'a>,
    /// May the device write to it?
    writes: bool,
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
    /// Pages: the current one, the offset in it, and the bytes left.
    Pages {
        page: NonNull<page>,
        offset: usize,
        len: usize,
    },
}

fn refused(index: usize, why: &'static CStr, value: usize) -> Refusal {
    Refusal::new(Errno::EFAULT, why)
        .at(index)
        .value(widen(value))
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

    fn of_bvec(index: usize, bvec: &bio_vec, writes: bool) -> Result<Self, Refusal> {
        let mut phys = 0;
        // SAFETY: Both pointers are valid for the call.
        let page = unsafe { kfi_bindings::kfi_helper_bvec_page(bvec, &mut phys, writes) };
        let page = NonNull::new(page).ok_or_else(|| {
            refused(
                index,
                c"no page that may be registered",
                bvec.bv_page.addr(),
            )
        })?;
        // The helper went to the page that the offset leads to.
        let offset = usize::try_from(bvec.bv_offset).map_err(|_| Errno::EINVAL)? % PAGE_SIZE;
        let len = usize::try_from(bvec.bv_len).map_err(|_| Errno::EINVAL)?;
        Ok(Self::Pages { page, offset, len })
    }

    /// Takes the next piece off the segment.
    fn next(
        &mut self,
        index: usize,
        writes: bool,
    ) -> Result<Option<(NonNull<page>, usize, usize)>, Refusal> {
        match *self {
            Self::End | Self::Virtual { len: 0, .. } | Self::Pages { len: 0, .. } => Ok(None),
            Self::Virtual { addr, len } => {
                let offset = addr % PAGE_SIZE;
                let here = len.min(PAGE_SIZE - offset);
                // SAFETY: The helper takes any address and reads page tables only.
                let page = unsafe {
                    kfi_bindings::kfi_helper_kvec_page(core::ptr::without_provenance(addr), writes)
                };
                let page = NonNull::new(page)
                    .ok_or_else(|| refused(index, c"no memory that may be registered", addr))?;
                *self = Self::Virtual {
                    // The range does not wrap, but may end with the address space.
                    addr: addr.wrapping_add(here),
                    len: len - here,
                };
                Ok(Some((page, offset, here)))
            }
            Self::Pages { page, offset, len } => {
                let here = len.min(PAGE_SIZE - offset);
                let left = len - here;
                let next = if left == 0 {
                    page
                } else {
                    // SAFETY: `page` is a valid page; the helper checks the one after it.
                    let next =
                        unsafe { kfi_bindings::kfi_helper_bvec_next_page(page.as_ptr(), writes) };
                    NonNull::new(next)
                        .ok_or_else(|| refused(index, c"pages end before the segment", left))?
                };
                *self = Self::Pages {
                    page: next,
                    offset: 0,
                    len: left,
                };
                Ok(Some((page, offset, here)))
            }
        }
    }
}

impl<'a> Pieces<'a> {
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
                .map(|bvec| Segment::of_bvec(index, bvec, self.writes)),
            Source::Sgl(_) => None,
        };
        let Some(segment) = segment else {
            return Ok(false);
        };
        self.current = segment?;
        self.index += 1;
        Ok(true)
    }

    fn try_next(&mut self) -> Result<Option<Piece>, Refusal> {
        loop {
            // The current segment is the one before `self.index`.
            if let Some((page, offset, len)) = self
                .current
                .next(self.index.saturating_sub(1), self.writes)?
            {
                // SAFETY: The helpers give only pages that exist, and by the contract of kfi_mr(3)
                // the memory stays until the region is closed.
                let page = unsafe { BorrowedPage::from_raw(page) };
                return Ok(Some(Piece { page, offset, len }));
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<Piece, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        self.try_next().transpose()
    }
}
