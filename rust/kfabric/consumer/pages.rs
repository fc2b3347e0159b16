// SPDX-License-Identifier: GPL-2.0

//! Memory in pages: [`Pages`] that a value owns, and bio_vecs of others ([`BioVecs`]).

use super::{
    memory::{
        List,
        Memory, //
    },
    Domain,
    Local,
    Pieces,
    Run, //
};
use crate::{
    region::access::Access,
    support::{
        errno::Errno,
        num::index,
        task::NoIo, //
    }, //
};
use core::{
    iter,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::bio_vec;

/// Memory in single pages, which needn't follow each other, to be registered by
/// [`regbv`](super::Domain::regbv), or as a scatterlist when it has been
/// [mapped](super::MappedList); or to be that of a [`Request`](super::Request), which is posted by
/// `kfi_sendmsg()` and the like then.
///
/// # Invariants
///
/// The pages hold `len` bytes from `offset` in the first on; `offset` is less than a page, and
/// there is no page without such a byte. All their bytes are initialized.
pub struct Pages {
    pages: KVec<Page>,
    offset: usize,
    len: usize,
}

impl Pages {
    /// Allocates pages for `len` bytes without I/O, and zeroes them. May sleep.
    pub fn zeroed(len: usize) -> Result<Self, Errno> {
        Self::zeroed_at(0, len)
    }

    /// Allocates pages for `len` bytes that start at `offset` in the first page, and zeroes them.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `offset` isn't less than a page.
    /// - `ENOMEM`.
    pub fn zeroed_at(offset: usize, len: usize) -> Result<Self, Errno> {
        let end = offset.checked_add(len).ok_or(Errno::EINVAL)?;
        if offset >= PAGE_SIZE {
            return Err(Errno::EINVAL);
        }
        let count = match len {
            0 => 0,
            _ => end.div_ceil(PAGE_SIZE),
        };
        let _noio = NoIo::enter();
        let mut pages = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            // Pages that are not read by anybody else have no use for old content.
            pages.push(Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?, GFP_KERNEL)?;
        }
        // INVARIANT: So many pages are needed, and they were zeroed.
        Ok(Self { pages, offset, len })
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where in the first page the bytes start.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The pages as C has them.
    pub(super) fn raw_pages(&self) -> impl Iterator<Item = *mut bindings::page> + '_ {
        self.pages.iter().map(Page::as_ptr)
    }

    /// Where in its page each page's bytes start, and how many there are.
    fn slices(&self) -> impl Iterator<Item = (usize, usize)> {
        let (mut offset, mut left) = (self.offset, self.len);
        iter::from_fn(move || {
            let start = core::mem::take(&mut offset);
            let len = left.min(PAGE_SIZE - start);
            left -= len;
            (len > 0).then_some((start, len))
        })
    }

    /// The pages as a list has them.
    fn entries(&self) -> impl Iterator<Item = Result<bio_vec, Errno>> + '_ {
        let pages = self.raw_pages().zip(self.slices());
        pages.map(|(page, (offset, len))| {
            Ok(bio_vec {
                bv_page: page,
                bv_len: u32::try_from(len).map_err(|_| Errno::EINVAL)?,
                bv_offset: u32::try_from(offset).map_err(|_| Errno::EINVAL)?,
            })
        })
    }
}

// SAFETY: The pages belong to this type until it is dropped, and are initialized. `with_list`
// lists them all.
unsafe impl Memory for Pages {
    fn len(&self) -> usize {
        self.len
    }

    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
        let mut list = KVec::with_capacity(self.pages.len(), GFP_KERNEL)?;
        for entry in self.entries() {
            list.push(entry?, GFP_KERNEL)?;
        }
        call(List::Bvec(&list))
    }

    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let left = self.len.saturating_sub(offset);
        if left == 0 {
            return;
        }
        // Doesn't overflow: not even the end of the bytes does.
        let at = self.offset + offset;
        let Some(page) = self.pages.get(at / PAGE_SIZE) else {
            return;
        };
        let here = (PAGE_SIZE - at % PAGE_SIZE).min(left);
        // SAFETY: The page is valid.
        let mapped = unsafe { bindings::kmap_local_page(page.as_ptr()) };
        if let Some(start) = NonNull::new(mapped.cast::<u8>()) {
            // SAFETY: The whole page was mapped.
            touch(unsafe { start.add(at % PAGE_SIZE) }, here);
        }
        // SAFETY: Mapped just now, and what `touch` may have mapped meanwhile it has unmapped.
        unsafe { bindings::kunmap_local(mapped) };
    }
}

// SAFETY: As above; the pages stay the same as long as the value is there.
unsafe impl Local for Pages {
    fn bytes(&self) -> usize {
        self.len
    }

    fn run(&self) -> Option<Run> {
        None
    }

    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.entries()
            .try_for_each(|entry| list.push_bio_vec(&entry?))
    }
}

/// Whose memory is in bio_vecs: an I/O request, for instance, whose pages are to be read or written by a
/// peer without being copied. A [`BioVecList`] of it can be registered.
///
/// # Examples
///
/// ```
/// use kernel::{bindings::bio_vec, page::Page, prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, BioVecList, BioVecs, Domain, Mr};
///
/// /// A page, and the bytes in it that count.
/// struct Sector {
///     _page: Page,
///     part: [bio_vec; 1],
/// }
///
/// // SAFETY: A pointer to a page may be used by any thread.
/// unsafe impl Send for Sector {}
///
/// // SAFETY: The page belongs to this value, and is there as long as it is. Nobody reads it.
/// unsafe impl BioVecs for Sector {
///     fn bio_vecs(&self) -> &[bio_vec] {
///         &self.part
///     }
///
///     fn is_readable(&self) -> bool {
///         false
///     }
///
///     fn is_writable(&self) -> bool {
///         true
///     }
/// }
///
/// fn receive(domain: &Arc<Domain>, page: Page) -> Result<Mr<BioVecList<Sector>>> {
///     let part = [bio_vec {
///         bv_page: page.as_ptr(),
///         bv_len: 512,
///         bv_offset: 1024,
///     }];
///     let sector = Sector { _page: page, part };
///     Ok(domain.regbv(BioVecList::new(sector), Access::REMOTE_WRITE)?)
/// }
/// ```
///
/// # Safety
///
/// - The bio_vecs name memory of this machine, which stays where it is, and is nobody else's to free,
///   until the value is dropped; forgetting it keeps it for good. Moving the value doesn't matter.
/// - Devices may read it until then if [`is_readable`](Self::is_readable), and write it if
///   [`is_writable`](Self::is_writable). Nobody has a reference to its bytes meanwhile; who else reads or writes
///   them is prepared to find some of before and some of after.
/// - What is readable is initialized.
/// - All functions always give the same until something else is done to the value.
pub unsafe trait BioVecs: Send + 'static {
    /// Where the memory is. Each has at least one byte.
    fn bio_vecs(&self) -> &[bio_vec];

    /// May it be read? Of pages that are only there to be written to, whatever was in them before stays
    /// unknown to everybody.
    fn is_readable(&self) -> bool;

    /// May it be written?
    fn is_writable(&self) -> bool;
}

/// Memory in bio_vecs, to be registered by [`regbv`](super::Domain::regbv), or to be that of a
/// [`Request`](super::Request), which is posted by `kfi_sendmsg()` and the like then.
pub struct BioVecList<B>(B);

impl<B: BioVecs> BioVecList<B> {
    /// Takes the memory of a value.
    pub fn new(value: B) -> Self {
        Self(value)
    }

    /// What the memory is.
    pub(super) fn bio_vecs(&self) -> &[bio_vec] {
        self.0.bio_vecs()
    }

    /// The value.
    pub fn into_inner(self) -> B {
        self.0
    }
}

// SAFETY: By the promises of `BioVecs`. No reference to the bytes is made, and what may not be read or written
// isn't registered for that.
unsafe impl<B: BioVecs> Memory for BioVecList<B> {
    fn len(&self) -> usize {
        let lengths = self.0.bio_vecs().iter().map(|bv| index(bv.bv_len));
        lengths.fold(0, usize::saturating_add)
    }

    fn is_readable(&self) -> bool {
        self.0.is_readable()
    }

    fn is_writable(&self) -> bool {
        self.0.is_writable()
    }

    fn fits(&self, _domain: &Arc<Domain>, access: Access) -> bool {
        (self.0.is_readable() || !access.device_reads())
            && (self.0.is_writable() || !access.device_writes())
    }

    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
        call(List::Bvec(self.0.bio_vecs()))
    }

    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let mut offset = offset;
        for bv in self.0.bio_vecs() {
            let len = index(bv.bv_len);
            if offset >= len {
                offset -= len;
                continue;
            }
            let at = index(bv.bv_offset) + offset;
            let here = (PAGE_SIZE - at % PAGE_SIZE).min(len - offset);
            // SAFETY: Pages of a bio_vec follow each other in the memory map, and this is one of them.
            let mapped = unsafe { bindings::kmap_local_page(bv.bv_page.add(at / PAGE_SIZE)) };
            if let Some(start) = NonNull::new(mapped.cast::<u8>()) {
                // SAFETY: The whole page was mapped.
                touch(unsafe { start.add(at % PAGE_SIZE) }, here);
            }
            // SAFETY: Mapped just now, and what `touch` may have mapped meanwhile it has unmapped.
            unsafe { bindings::kunmap_local(mapped) };
            return;
        }
    }
}

// SAFETY: By the promises of `BioVecs`, as above.
unsafe impl<B: BioVecs> Local for BioVecList<B> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn run(&self) -> Option<Run> {
        None
    }

    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.0
            .bio_vecs()
            .iter()
            .try_for_each(|bv| list.push_bio_vec(bv))
    }

    fn may_be_read(&self) -> bool {
        self.0.is_readable()
    }

    fn may_be_written(&self) -> bool {
        self.0.is_writable()
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_pages)]
mod tests {
    use super::*;
    use crate::consumer::Backing;

    #[test]
    fn as_many_pages_as_needed() {
        let pages = |offset, len| Pages::zeroed_at(offset, len).map(|pages| pages.pages.len());
        assert_eq!(pages(0, 0), Ok(0));
        assert_eq!(pages(0, 1), Ok(1));
        assert_eq!(pages(0, PAGE_SIZE), Ok(1));
        assert_eq!(pages(1, PAGE_SIZE), Ok(2));
        assert_eq!(pages(PAGE_SIZE - 1, 2), Ok(2));
        assert_eq!(pages(PAGE_SIZE, 1), Err(Errno::EINVAL));
        assert_eq!(pages(1, usize::MAX), Err(Errno::EINVAL));
    }

    #[test]
    fn nothing_is_reached_behind_the_end() -> Result {
        let pages = Pages::zeroed_at(100, PAGE_SIZE)?;
        let reached = |offset| {
            let mut reached = 0;
            pages.with_stretch(offset, |_, len| reached = len);
            reached
        };
        assert_eq!(reached(0), PAGE_SIZE - 100);
        assert_eq!(reached(PAGE_SIZE - 100), 100);
        assert_eq!(reached(PAGE_SIZE - 1), 1);
        for offset in [PAGE_SIZE, 2 * PAGE_SIZE, usize::MAX] {
            assert_eq!(reached(offset), 0);
        }
        Ok(())
    }

    #[test]
    fn bytes_are_where_they_were_put() -> Result {
        let mut pages = Pages::zeroed_at(100, 2 * PAGE_SIZE)?;
        pages.write(PAGE_SIZE - 103, b"across the end of a page")?;
        assert_eq!(pages.compare(PAGE_SIZE - 103, b"across")?, None);
        assert_eq!(pages.compare(PAGE_SIZE - 103, b"acRoss")?, Some(2));
        let mut out = [0; 10];
        pages.read(PAGE_SIZE - 96, &mut out)?;
        assert_eq!(&out, b"the end of");
        assert_eq!(pages.write(2 * PAGE_SIZE - 3, b"four"), Err(Errno::EINVAL));
        assert_eq!(pages.write(2 * PAGE_SIZE - 4, b"four"), Ok(()));
        Ok(())
    }
}
