// SPDX-License-Identifier: GPL-2.0

//! Scatterlists of pages, and their mapping for a domain's device.
//!
//! C header: [`include/kfi_dma_ext.h`](srctree/include/kfi_dma_ext.h)

use super::{
    call::{
        self,
        op,
        op_if_any, //
    },
    memory::{
        List,
        Memory, //
    },
    Domain,
    Pages,
    RegisterError, //
};
use crate::{
    object::ext::dma,
    region::access::Access,
    support::{
        errno::Errno,
        num::index,
        task::NoIo, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    dma::DataDirection,
    ffi::c_int,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    bio_vec,
    kfi_dma_ops,
    scatterlist, //
};

/// A scatterlist of pages.
///
/// # Invariants
///
/// `table` was allocated by `sg_alloc_table_from_pages_segment()`.
pub(super) struct SgTable(bindings::sg_table);

/// Most bytes of an entry: what any device takes that doesn't say otherwise
/// (`dma_get_max_seg_size()`).
const MAX_BYTES: u32 = 64 << 10;

impl SgTable {
    /// Lists the pages; those that follow each other share an entry, as far as devices can take it.
    pub(super) fn new(pages: &Pages) -> Result<Self, Errno> {
        let mut list = KVec::new();
        for page in pages.raw_pages() {
            list.push(page, GFP_KERNEL)?;
        }
        Self::of(&mut list, pages.offset(), pages.len())
    }

    /// The same of memory in bio_vecs.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is a gap, since one that isn't the first begins, or one that isn't the last ends, within
    ///   a page.
    pub(super) fn of_bio_vecs(pieces: &[bio_vec]) -> Result<Self, Errno> {
        let mut list = KVec::new();
        let first = pieces.first().ok_or(Errno::EINVAL)?;
        let first_offset = index(first.bv_offset) % PAGE_SIZE;
        let mut len: usize = 0;
        for piece in pieces {
            let start = index(piece.bv_offset);
            // Each joint is at the end of a page, that of the last piece and this one, too.
            if len > 0 && (start % PAGE_SIZE != 0 || (first_offset + len) % PAGE_SIZE != 0) {
                return Err(Errno::EINVAL);
            }
            let end = start + index(piece.bv_len);
            for number in start / PAGE_SIZE..end.div_ceil(PAGE_SIZE) {
                // The pages of a bio_vec follow each other in the memory map.
                list.push(piece.bv_page.wrapping_add(number), GFP_KERNEL)?;
            }
            len += end - start;
        }
        Self::of(&mut list, first_offset, len)
    }

    /// Of pages which hold `len` bytes from `offset` in the first on.
    fn of(pages: &mut [*mut bindings::page], offset: usize, len: usize) -> Result<Self, Errno> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let count = u32::try_from(pages.len()).map_err(|_| Errno::E2BIG)?;
        let mut table = bindings::sg_table::default();
        // SAFETY: There are `count` pages, and they hold so many bytes.
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
        // INVARIANT: Just allocated.
        call::result(ret).map(|()| Self(table))
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
        // SAFETY: By the invariant, and nobody uses it any more.
        unsafe { bindings::sg_free_table(&mut self.0) };
    }
}

/// A mapping of a scatterlist, undone when dropped.
///
/// # Invariants
///
/// The `entries` of `table` are mapped in this direction for the domain's device, by `ops`, which
/// the domain keeps. The mapping has `mapped` entries.
pub(super) struct Mapping {
    table: SgTable,
    entries: c_int,
    mapped: usize,
    direction: DataDirection,
    ops: NonNull<kfi_dma_ops>,
    domain: Arc<Domain>,
}

// SAFETY: A mapping is plain memory and pointers that any thread may use.
unsafe impl Send for Mapping {}
// SAFETY: Only the synchronizing calls are made on a shared mapping; they change nothing in it.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a scatterlist. May sleep.
    pub(super) fn new(
        domain: &Arc<Domain>,
        table: SgTable,
        direction: DataDirection,
    ) -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        let ops: NonNull<kfi_dma_ops> = domain.extension(dma::NAME)?.cast();
        let entries = table.entries()?;
        // SAFETY: The domain is open, the table is the extension's, and the list is ours.
        let mapped = unsafe {
            op!(
                ops.as_ptr(),
                kfi_dma_ops,
                map_sg(domain.fid(), table.first(), entries, direction.into())
            )
        }?;
        // INVARIANT: Just mapped.
        Ok(Self {
            entries,
            mapped: usize::try_from(mapped).map_err(|_| Errno::from_c(mapped))?,
            direction,
            ops,
            domain: domain.clone(),
            table,
        })
    }

    /// May it be registered in this domain, with these rights?
    pub(super) fn fits(&self, domain: &Arc<Domain>, access: Access) -> bool {
        let direction_fits = match self.direction {
            DataDirection::ToDevice => !access.device_writes(),
            DataDirection::FromDevice => !access.device_reads(),
            _ => true,
        };
        direction_fits && Arc::ptr_eq(&self.domain, domain)
    }

    /// What is to be registered of it.
    pub(super) fn list(&self) -> Result<List<'_>, Errno> {
        let first = NonNull::new(self.table.first()).ok_or(Errno::EINVAL)?;
        Ok(List::Sgl(first, self.mapped))
    }
}

/// Defines calls that hand over all of a mapping.
macro_rules! hand_over {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl Mapping {
            $($(#[$doc])* pub(super) fn $name(&self) {
                // A provider that doesn't have it has nothing to do there.
                // SAFETY: By the invariant of this type.
                let _ = unsafe {
                    op_if_any!(
                        self.ops.as_ptr(),
                        kfi_dma_ops,
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
    /// Undoes the mapping.
    unmap_sg;
    /// Lets the processor see what the device wrote.
    sync_sg_for_cpu;
    /// Lets the device see what the processor wrote.
    sync_sg_for_device;
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.unmap_sg();
    }
}

/// Pages that are mapped for a domain's device, to be registered by
/// [`regsgl`](super::Domain::regsgl) in that domain.
///
/// They are unmapped when it is dropped.
///
/// # When the device goes away
///
/// Nothing tells a list that its device is being removed, and the provider doesn't undo mappings
/// that aren't its own. A list that is dropped later is as good as leaked, in part: its pages are
/// freed, which does no harm, since the device's driver is gone and with it whoever could reach
/// them; but no mapping is undone, so addresses of the IOMMU stay in use, and the kernel's
/// debugging of DMA (`CONFIG_DMA_API_DEBUG`) complains.
///
/// So whoever holds lists for longer than a device is sure to be there must be told in time, which
/// is the business of a provider's extension. With verbs that is `on_removal` of
/// `verbs_dom_ops_v1` ([`include/kfi_verbs_ext.h`](srctree/include/kfi_verbs_ext.h)), to be had by
/// `kfi_open_ops()` on [`Domain::as_raw`]; there is no safe way to it yet. In the callback:
///
/// 1. Close the regions on the lists, and keep what [`Mr::close`](super::Mr::close) gives back.
/// 2. Drop the lists, or [`unmap`](Self::unmap) them.
/// 3. Neither close nor drop the last reference to the domain: only after the callback.
///
/// The callback must be taken back (`on_removal` with NULL and the same argument) before the domain
/// is closed or its argument is freed, and not from the callback itself.
pub struct MappedList {
    // Dropped in this order: no page is freed while it is mapped.
    mapping: Mapping,
    pages: Pages,
}

impl MappedList {
    /// Maps the pages in the direction that the rights ask for. May sleep.
    ///
    /// # Errors
    ///
    /// All give the pages back.
    ///
    /// - `EINVAL`: there are none.
    /// - `ENOSYS`: the provider has no DMA extension.
    /// - `EIO`: the memory can't be mapped.
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

    /// Unmaps the pages and gives them back. May sleep.
    pub fn unmap(self) -> Pages {
        drop(self.mapping);
        self.pages
    }

    /// How many entries the mapping has: as many as there are pages, or fewer.
    pub fn entries(&self) -> usize {
        self.mapping.mapped
    }
}

// SAFETY: The bytes are those of the pages. The list is that of a mapping of just these, with as
// many entries as it has; it is unmapped when this is dropped, and never changed before.
unsafe impl Memory for MappedList {
    fn len(&self) -> usize {
        self.pages.len()
    }

    fn fits(&self, domain: &Arc<Domain>, access: Access) -> bool {
        self.mapping.fits(domain, access)
    }

    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
        call(self.mapping.list()?)
    }

    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        self.pages.with_stretch(offset, touch);
    }

    fn to_cpu(&self) {
        self.mapping.sync_sg_for_cpu();
    }

    fn to_device(&self) {
        self.mapping.sync_sg_for_device();
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_sg_table)]
mod tests {
    use super::*;

    /// How many bytes a scatterlist of these pieces, offset and length, of one page after the other has.
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
            // SAFETY: The table has so many entries.
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
