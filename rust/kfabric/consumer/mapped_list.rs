// SPDX-License-Identifier: GPL-2.0

//! Scatterlists and bio_vecs of pages: scatterlists that are mapped for a domain's device, and memory for a
//! registration call that the consumer selects ([`Formed`]).
//!
//! C header: [`include/kfi_dma_ext.h`](srctree/include/kfi_dma_ext.h)

use super::{
    error::unfit,
    handle::op_if_any,
    memory::{
        MemoryList,
        OwnedMemory, //
    },
    *, //
};
use crate::object::ext::DMA_NAME;
use kernel::{
    bindings,
    dma::DataDirection,
    page::PAGE_SIZE, //
};
use kfi_bindings::kfi_dma_ops;

/// A scatterlist of pages.
///
/// # Invariants
///
/// `table` was allocated by `sg_alloc_table_from_pages_segment()`.
pub(super) struct SgTable(bindings::sg_table);

/// Maximum size of an entry in bytes: the default of `dma_get_max_seg_size()`.
const MAX_BYTES: u32 = 64 << 10;

impl SgTable {
    /// Creates a scatterlist of pages. Contiguous pages share an entry, up to [`MAX_BYTES`].
    pub(super) fn new(pages: &Pages) -> Result<Self, Errno> {
        let mut list = KVec::new();
        for page in pages.raw_pages() {
            list.push(page, GFP_KERNEL)?;
        }
        Self::of(&mut list, pages.offset(), pages.len())
    }

    /// Creates a scatterlist of memory in bio_vecs.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is a gap: a bio_vec but the first begins, or one but the last ends, within
    ///   a page.
    pub(super) fn of_bio_vecs(pieces: &[bio_vec]) -> Result<Self, Errno> {
        let mut list = KVec::new();
        let first = pieces.first().ok_or(Errno::EINVAL)?;
        let first_offset = index(first.bv_offset) % PAGE_SIZE;
        let mut len: usize = 0;
        for piece in pieces {
            let start = index(piece.bv_offset);
            // Both the end of the previous bio_vec and the start of this one are page boundaries.
            if len > 0 && (start % PAGE_SIZE != 0 || (first_offset + len) % PAGE_SIZE != 0) {
                return Err(Errno::EINVAL);
            }
            let end = start + index(piece.bv_len);
            for number in start / PAGE_SIZE..end.div_ceil(PAGE_SIZE) {
                // The pages of a bio_vec are contiguous in the memory map.
                list.push(piece.bv_page.wrapping_add(number), GFP_KERNEL)?;
            }
            len += end - start;
        }
        Self::of(&mut list, first_offset, len)
    }

    /// Creates a scatterlist of pages with `len` bytes from `offset` in the first page.
    fn of(pages: &mut [*mut bindings::page], offset: usize, len: usize) -> Result<Self, Errno> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let count = u32::try_from(pages.len()).map_err(|_| Errno::E2BIG)?;
        let mut table = bindings::sg_table::default();
        // SAFETY: `pages` has `count` entries, which have `len` bytes from `offset`. `table` is a
        // local.
        let ret = unsafe {
            bindings::sg_alloc_table_from_pages_segment(
                &mut table,
                pages.as_mut_ptr(),
                count,
                u32::try_from(offset).map_err(|_| Errno::EINVAL)?,
                len,
                MAX_BYTES,
                bindings::GFP_KERNEL,
            )
        };
        // INVARIANT: The call allocated the table.
        handle::result(ret).map(|()| Self(table))
    }

    pub(super) fn first(&self) -> *mut scatterlist {
        self.0.sgl
    }

    pub(super) fn entries(&self) -> Result<c_int, Errno> {
        c_int::try_from(self.0.orig_nents).map_err(|_| Errno::E2BIG)
    }
}

impl Drop for SgTable {
    fn drop(&mut self) {
        // SAFETY: The table is allocated by the invariant, and nobody uses it after this.
        unsafe { bindings::sg_free_table(&mut self.0) };
    }
}

/// A mapping of a scatterlist. Dropping it unmaps the list.
///
/// # Invariants
///
/// `ops` mapped the `entries` of `table` in this direction for the device of `domain`, which keeps
/// `ops` valid. The mapping has `mapped` entries.
pub(super) struct Mapping {
    table: SgTable,
    entries: c_int,
    mapped: usize,
    direction: DataDirection,
    ops: NonNull<kfi_dma_ops>,
    domain: Arc<Domain>,
}

// SAFETY: The mapping is memory and pointers that any thread may use.
unsafe impl Send for Mapping {}
// SAFETY: A shared mapping is only synchronized, which changes nothing in it.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a scatterlist. May sleep.
    pub(super) fn new(
        domain: &Arc<Domain>,
        table: SgTable,
        direction: DataDirection,
    ) -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        let ops: NonNull<kfi_dma_ops> = domain.extension(DMA_NAME)?.cast();
        let entries = table.entries()?;
        // SAFETY: The domain is open, and keeps `ops` valid. The list is in `table`, which is
        // owned.
        let mapped = unsafe {
            op!(
                ops.as_ptr(),
                map_sg(domain.fid(), table.first(), entries, direction.into())
            )
        }?;
        // INVARIANT: The call mapped the list.
        Ok(Self {
            entries,
            mapped: usize::try_from(mapped).map_err(|_| Errno::from_c(mapped))?,
            direction,
            ops,
            domain: domain.clone(),
            table,
        })
    }

    /// Checks whether the list may be registered in this domain with these rights.
    pub(super) fn fits(&self, domain: &Arc<Domain>, access: Access) -> bool {
        let direction_fits = match self.direction {
            DataDirection::ToDevice => !access.device_writes(),
            DataDirection::FromDevice => !access.device_reads(),
            _ => true,
        };
        direction_fits && Arc::ptr_eq(&self.domain, domain)
    }

    /// Returns the list for `kfi_mr_regsgl()`.
    pub(super) fn list(&self) -> Result<MemoryList<'_>, Errno> {
        let first = NonNull::new(self.table.first()).ok_or(Errno::EINVAL)?;
        Ok(MemoryList::Sgl(first, self.mapped))
    }
}

/// Defines methods that call an operation with the whole mapping.
macro_rules! hand_over {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Mapping {
            $($(#[$doc])* pub(super) fn $name(&self) {
                // A provider without the operation has nothing to do.
                // SAFETY: The domain is open and keeps `ops` valid; `table` is mapped, by the
                // invariant.
                let _ = unsafe {
                    op_if_any!(
                        self.ops.as_ptr(),
                        $name(
                            self.domain.fid(),
                            self.table.first(),
                            self.entries,
                            self.direction.into(),
                        )
                    )
                };
            })*
        }
    };
}

hand_over! {
    /// Unmaps the list.
    unmap_sg;
    /// Synchronizes the bytes for accesses by the CPU.
    sync_sg_for_cpu;
    /// Synchronizes the bytes for accesses by the device.
    sync_sg_for_device;
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.unmap_sg();
    }
}

/// Pages that are mapped for a domain's device, for [`regsgl`](super::Domain::regsgl) in that
/// domain.
///
/// Dropping the list unmaps the pages.
///
/// # Device removal
///
/// A list isn't told that its device is being removed, and the provider doesn't undo the consumer's
/// mappings. If the list is dropped after the removal:
///
/// - It frees its pages, which is safe, because the device's driver is gone.
/// - It doesn't undo the mapping. So IOMMU addresses stay in use, and `CONFIG_DMA_API_DEBUG` warns.
///
/// A consumer that keeps lists for long should ask the provider for notice of the removal. The
/// extension of the verbs provider is `on_removal` of `verbs_dom_ops_v1`
/// ([`include/kfi_verbs_ext.h`](srctree/include/kfi_verbs_ext.h)). Call `kfi_open_ops()` on
/// [`Domain::as_raw`] to get it. Rust has no safe way to it. The callback should:
///
/// 1. Close the regions of the lists, and keep the lists that [`Mr::close`] returns.
/// 2. Drop the lists, or [`unmap`](Self::unmap) them.
/// 3. Keep the domain. Only close it, or drop the last reference to it, after the callback.
///
/// The consumer must cancel the callback before it closes the domain or frees the argument:
/// `on_removal` with NULL and the same argument. The callback itself must not do that.
pub struct MappedList {
    // Dropped in this order: the pages are freed after the mapping is undone.
    mapping: Mapping,
    pages: Pages,
}

impl MappedList {
    /// Maps the pages in the direction for these rights. May sleep.
    ///
    /// # Errors
    ///
    /// All errors have the pages.
    ///
    /// - `EINVAL`: there are no pages.
    /// - `ENOSYS`: the provider has no DMA extension.
    /// - `EIO`: the provider can't map the memory.
    /// - `ENODEV`: the device is gone.
    /// - `ENOMEM`.
    pub fn map(
        domain: &Arc<Domain>,
        pages: Pages,
        access: Access,
    ) -> Result<Self, RegisterError<Pages>> {
        let _noio = NoIo::enter();
        let mapping =
            SgTable::new(&pages).and_then(|table| Mapping::new(domain, table, access.direction()));
        match mapping {
            Ok(mapping) => Ok(Self { mapping, pages }),
            Err(errno) => Err(RegisterError::new(errno, pages)),
        }
    }

    /// Unmaps the pages and returns them. May sleep.
    pub fn unmap(self) -> Pages {
        drop(self.mapping);
        self.pages
    }

    /// Returns the number of entries of the mapping, at most that of the pages.
    pub fn entries(&self) -> usize {
        self.mapping.mapped
    }
}

// SAFETY: `self` owns the pages. The list is a mapping of them, with all its entries. It stays
// mapped until `self` is dropped, and never changes.
unsafe impl OwnedMemory for MappedList {
    fn len(&self) -> usize {
        self.pages.len()
    }

    fn fits(&self, domain: &Arc<Domain>, access: Access) -> bool {
        self.mapping.fits(domain, access)
    }

    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        call(self.mapping.list()?)
    }

    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        self.pages.with_extent(offset, touch);
    }

    fn to_cpu(&self) {
        self.mapping.sync_sg_for_cpu();
    }

    fn to_device(&self) {
        self.mapping.sync_sg_for_device();
    }
}

/// The form in which the memory is passed to C.
enum Form {
    BioVecs,
    Buffer,
    Buffers,
    Scatterlist(Mapping),
}

/// Memory in bio_vecs for the registration call of a selected form.
///
/// [`reg_formed`](Domain::reg_formed) calls the one for the form. [`regattr`](Domain::regattr)
/// takes any form. A consumer without a preference uses [`regbv`](Domain::regbv) with a
/// [`BioVecList`].
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, BioVecs, Domain, Formed, Mr};
///
/// fn lend<V: BioVecs>(domain: &Arc<Domain>, pages: V) -> Result<Mr<Formed<V>>> {
///     let pages = Formed::scatterlist(domain, pages, Access::REMOTE_READ)?;
///     Ok(domain.reg_formed(pages, Access::REMOTE_READ)?)
/// }
/// ```
///
/// # Invariants
///
/// A scatterlist in `form` is a mapping of the memory in `list`.
pub struct Formed<V> {
    // Dropped in this order: the memory is returned after the mapping is undone.
    form: Form,
    list: BioVecList<V>,
}

impl<V: BioVecs> Formed<V> {
    /// Selects `kfi_mr_regbv()`.
    pub fn bio_vecs(value: V) -> Self {
        Self::new(value, Form::BioVecs)
    }

    /// Selects `kfi_mr_reg()`, for one bio_vec. Registering more of them fails with `EINVAL`.
    pub fn buffer(value: V) -> Self {
        Self::new(value, Form::Buffer)
    }

    /// Selects `kfi_mr_regv()`.
    pub fn buffers(value: V) -> Self {
        Self::new(value, Form::Buffers)
    }

    /// Selects `kfi_mr_regsgl()` in this domain. Maps a scatterlist in the direction for these
    /// rights, until the value is returned. May sleep, but not for I/O.
    ///
    /// # Errors
    ///
    /// All errors have the value.
    ///
    /// - `EINVAL`: the memory isn't for these rights.
    /// - `EINVAL`: there is a gap: a bio_vec but the first begins, or one but the last ends, within
    ///   a page.
    /// - `ENOSYS`: the provider has no DMA extension.
    /// - `EIO`: the provider can't map the memory.
    /// - `ENODEV`: the device is gone.
    /// - `ENOMEM`.
    pub fn scatterlist(
        domain: &Arc<Domain>,
        value: V,
        access: Access,
    ) -> Result<Self, RegisterError<V>> {
        let _noio = NoIo::enter();
        let list = BioVecList::new(value);
        let mapping = match list.fits(domain, access) {
            true => SgTable::of_bio_vecs(list.bio_vecs())
                .and_then(|table| Mapping::new(domain, table, access.direction())),
            false => Err(unfit(c"map_sg", c"memory that is not for these rights")),
        };
        match mapping {
            // INVARIANT: The mapping is that of the memory in `list`, which doesn't change.
            Ok(mapping) => Ok(Self {
                form: Form::Scatterlist(mapping),
                list,
            }),
            Err(errno) => Err(RegisterError::new(errno, list.into_inner())),
        }
    }

    fn new(value: V, form: Form) -> Self {
        let list = BioVecList::new(value);
        // INVARIANT: `form` is no scatterlist.
        Self { form, list }
    }

    /// Unmaps the memory and returns the value. May sleep.
    pub fn into_inner(self) -> V {
        drop(self.form);
        self.list.into_inner()
    }
}

/// Returns the memory of a bio_vec by its kernel address.
///
/// # Safety
///
/// `piece` is one of a [`BioVecs`].
unsafe fn address(piece: &bio_vec) -> Result<kvec, Errno> {
    // SAFETY: The page of `piece` is valid by the contract of `BioVecs`.
    let start = unsafe { kfi_bindings::kfi_helper_bvec_address(piece) };
    NonNull::new(start).ok_or(Errno::EFAULT).map(|start| kvec {
        iov_base: start.as_ptr(),
        iov_len: index(piece.bv_len),
    })
}

// SAFETY: `BioVecList` promises the same of the bytes. All forms list the same bytes: the pages of
// a bio_vec are contiguous in the kernel's map of all memory, and the mapping is that of `list`.
unsafe impl<V: BioVecs> OwnedMemory for Formed<V> {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn is_readable(&self) -> bool {
        self.list.is_readable()
    }

    fn is_writable(&self) -> bool {
        self.list.is_writable()
    }

    fn fits(&self, domain: &Arc<Domain>, access: Access) -> bool {
        let mapped_so = match &self.form {
            Form::Scatterlist(mapping) => mapping.fits(domain, access),
            _ => true,
        };
        mapped_so && self.list.fits(domain, access)
    }

    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.list.with_list(|list| match (&self.form, list) {
            (Form::Scatterlist(mapping), _) => call(mapping.list()?),
            (Form::Buffer, MemoryList::Bvec([piece])) => {
                // SAFETY: `piece` is one of a `BioVecs`.
                call(MemoryList::Buffer(unsafe { address(piece) }?))
            }
            (Form::Buffer, _) => Err(unfit(c"register", c"memory in more than one piece")),
            (Form::Buffers, MemoryList::Bvec(pieces)) => {
                let mut list = KVec::with_capacity(pieces.len(), GFP_KERNEL)?;
                for piece in pieces {
                    // SAFETY: `piece` is one of a `BioVecs`.
                    list.push(unsafe { address(piece) }?, GFP_KERNEL)?;
                }
                call(MemoryList::Kvec(&list))
            }
            (_, list) => call(list),
        })
    }

    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        self.list.with_extent(offset, touch);
    }

    fn to_cpu(&self) {
        if let Form::Scatterlist(mapping) = &self.form {
            mapping.sync_sg_for_cpu();
        }
    }

    fn to_device(&self) {
        if let Form::Scatterlist(mapping) = &self.form {
            mapping.sync_sg_for_device();
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_sg_table)]
mod tests {
    use super::*;

    /// Returns the size of a scatterlist of these offsets and lengths, each in another page.
    fn bytes(pieces: &[(u32, u32)]) -> Result<usize, Errno> {
        let pages = Pages::zeroed(4 * PAGE_SIZE)?;
        let mut list = KVec::new();
        for (bv_page, (bv_offset, bv_len)) in pages.raw_pages().zip(pieces) {
            let piece = bio_vec {
                bv_page,
                bv_len: *bv_len,
                bv_offset: *bv_offset,
            };
            list.push(piece, GFP_KERNEL)?;
        }
        let table = SgTable::of_bio_vecs(&list)?;
        let (mut sg, mut sum) = (table.first(), 0);
        for _ in 0..table.entries()? {
            // SAFETY: `sg` is an entry of the table, or the end after the last one.
            unsafe {
                sum += index((*sg).length);
                sg = bindings::sg_next(sg);
            }
        }
        Ok(sum)
    }

    #[test]
    fn no_gaps() {
        let page = u32::try_from(PAGE_SIZE).unwrap_or(0);
        assert_eq!(bytes(&[(512, 1024)]), Ok(1024));
        assert_eq!(
            bytes(&[(512, page - 512), (0, page), (0, 7)]),
            Ok(2 * PAGE_SIZE - 505)
        );
        assert_eq!(bytes(&[(512, page - 513), (0, page)]), Err(Errno::EINVAL));
        assert_eq!(bytes(&[(0, page), (1, page - 1)]), Err(Errno::EINVAL));
        assert_eq!(bytes(&[]), Err(Errno::EINVAL));
    }
}
