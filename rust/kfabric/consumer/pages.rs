// SPDX-License-Identifier: GPL-2.0

//! Memory in pages: [`Pages`] that a value owns, and bio_vecs of others ([`BioVecs`]).

use super::{
    memory::{
        MemoryList,
        OwnedMemory, //
    },
    *, //
};
use core::iter;
use kernel::{
    bindings,
    page::{
        Page,
        PAGE_SIZE, //
    }, //
};

/// Memory in single pages, which need not be contiguous.
///
/// [`regbv`](super::Domain::regbv) registers the pages. [`MappedList`] maps them. A [`Request`]
/// transfers them with `kfi_sendmsg()` or another call for messages.
///
/// # Invariants
///
/// The pages have `len` bytes, from `offset` in the first page. `offset` is less than a page, and
/// each page has at least one of the bytes. All their bytes are initialized.
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
            // Zeroed, because a peer may read the whole page.
            pages.push(Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?, GFP_KERNEL)?;
        }
        // INVARIANT: `count` is the number of pages with these bytes, and they are zeroed.
        Ok(Self { pages, offset, len })
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Checks whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the offset of the bytes in the first page.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns an iterator over the C objects.
    pub(super) fn raw_pages(&self) -> impl Iterator<Item = *mut bindings::page> + '_ {
        self.pages.iter().map(Page::as_ptr)
    }

    /// Returns an iterator over the pages' offsets and lengths.
    fn slices(&self) -> impl Iterator<Item = (usize, usize)> {
        let (mut offset, mut left) = (self.offset, self.len);
        iter::from_fn(move || {
            let start = core::mem::take(&mut offset);
            let len = left.min(PAGE_SIZE - start);
            left -= len;
            (len > 0).then_some((start, len))
        })
    }

    /// Returns an iterator over the pages as bio_vecs.
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

// SAFETY: `self` owns the pages until it is dropped, and they are initialized. `with_list` lists
// all of them.
unsafe impl OwnedMemory for Pages {
    fn len(&self) -> usize {
        self.len
    }

    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let mut list = KVec::with_capacity(self.pages.len(), GFP_KERNEL)?;
        for entry in self.entries() {
            list.push(entry?, GFP_KERNEL)?;
        }
        call(MemoryList::Bvec(&list))
    }

    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let left = self.len.saturating_sub(offset);
        if left == 0 {
            return;
        }
        // Doesn't overflow, because the end of the bytes doesn't.
        let at = self.offset + offset;
        let Some(page) = self.pages.get(at / PAGE_SIZE) else {
            return;
        };
        let here = (PAGE_SIZE - at % PAGE_SIZE).min(left);
        // SAFETY: `self` owns the page, and `here` bytes from there are in it.
        unsafe { touch_page(page.as_ptr(), at % PAGE_SIZE, here, touch) };
    }
}

// SAFETY: `self` owns the pages until it is dropped, and never replaces them.
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

/// Memory of others in bio_vecs, for example an I/O request, which a peer accesses without a copy.
/// A [`BioVecList`] of it can be registered.
///
/// # Examples
///
/// ```
/// use kernel::{bindings::bio_vec, page::Page, prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, BioVecList, BioVecs, Domain, Mr};
///
/// /// A page, and a part of it.
/// struct Sector {
///     _page: Page,
///     part: [bio_vec; 1],
/// }
///
/// // SAFETY: Any thread may use a pointer to a page.
/// unsafe impl Send for Sector {}
///
/// // SAFETY: This value owns the page until it is dropped. Nobody reads it.
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
/// - The bio_vecs name memory of this machine. It stays in place, and nobody frees it, until the
///   value is dropped. Moving the value has no effect on it. Forgetting the value leaks it.
/// - Until then devices may read it if [`is_readable`](Self::is_readable), and write it if
///   [`is_writable`](Self::is_writable). Nobody has a reference to its bytes meanwhile. Others that
///   read or write the bytes expect a mixture of old and new ones.
/// - Readable memory is initialized.
/// - All functions return the same until the value is changed.
pub unsafe trait BioVecs: Send + 'static {
    /// Returns the memory. Each bio_vec has at least one byte.
    fn bio_vecs(&self) -> &[bio_vec];

    /// Checks whether the memory may be read. If not, nobody learns the previous content of its
    /// pages.
    fn is_readable(&self) -> bool;

    /// Checks whether the memory may be written.
    fn is_writable(&self) -> bool;

    /// Gives the memory up: the device won't let go of it, so it must never be freed. Called instead of dropping the
    /// value, by an [`FilledMr`]. May sleep.
    ///
    /// The default forgets the value. A consumer that has to end a request, for example, raises the reference counts of
    /// its pages, and ends it with an error.
    fn leak(self)
    where
        Self: Sized,
    {
        core::mem::forget(self);
    }
}

/// Memory in bio_vecs, for [`regbv`](super::Domain::regbv) or for a [`Request`], which
/// `kfi_sendmsg()` or another call for messages posts.
pub struct BioVecList<B>(B);

impl<B: BioVecs> BioVecList<B> {
    /// Creates a list of the memory of a value.
    pub fn new(value: B) -> Self {
        Self(value)
    }

    /// Returns the bio_vecs.
    pub(super) fn bio_vecs(&self) -> &[bio_vec] {
        self.0.bio_vecs()
    }

    /// Returns the value.
    pub fn into_inner(self) -> B {
        self.0
    }
}

// SAFETY: `BioVecs` promises the same of the bytes. No function here creates a reference to them.
// `fits` refuses rights that the memory isn't for.
unsafe impl<B: BioVecs> OwnedMemory for BioVecList<B> {
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

    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        call(MemoryList::Bvec(self.0.bio_vecs()))
    }

    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let mut offset = offset;
        for bv in self.0.bio_vecs() {
            let len = index(bv.bv_len);
            if offset >= len {
                offset -= len;
                continue;
            }
            let at = index(bv.bv_offset) + offset;
            let here = (PAGE_SIZE - at % PAGE_SIZE).min(len - offset);
            // SAFETY: The pages of a bio_vec are contiguous in the memory map. `BioVecs` promises
            // that this page stays, and `here` bytes from there are in it.
            unsafe { touch_page(bv.bv_page.add(at / PAGE_SIZE), at % PAGE_SIZE, here, touch) };
            return;
        }
    }
}

/// Maps a page, and calls `touch` with the address of the byte at `offset` and with `len`.
///
/// # Safety
///
/// `page` is valid, and has `len` bytes from `offset`.
unsafe fn touch_page(
    page: *mut bindings::page,
    offset: usize,
    len: usize,
    touch: impl FnOnce(NonNull<u8>, usize),
) {
    // SAFETY: `page` is valid by this function's contract.
    let mapped = unsafe { bindings::kmap_local_page(page) };
    if let Some(start) = NonNull::new(mapped.cast::<u8>()) {
        // SAFETY: The whole page is mapped, and `offset` is in it by this function's contract.
        touch(unsafe { start.add(offset) }, len);
    }
    // SAFETY: This is the last mapping of the task: `touch` has undone its own.
    unsafe { bindings::kunmap_local(mapped) };
}

// SAFETY: `BioVecs` promises the same of the bytes, and that its functions return the same each
// time.
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
            pages.with_extent(offset, |_, len| reached = len);
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
