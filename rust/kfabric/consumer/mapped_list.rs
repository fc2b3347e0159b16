// SPDX-License-Identifier: GPL-2.0

//! Pages that are mapped for a domain's device, as a scatterlist.
//!
//! C header: [`include/kfi_dma_ext.h`](srctree/include/kfi_dma_ext.h)

use super::{
    call::{
        op,
        op_if_any, //
    },
    memory::{
        List,
        Memory, //
    },
    sg_table::SgTable,
    Domain,
    Pages,
    RegisterError, //
};
use crate::{
    object::ext::dma,
    region::access::Access,
    support::{
        errno::Errno,
        noio::NoIo, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    dma::DataDirection,
    ffi::c_int,
    sync::Arc, //
};
use kfi_bindings::kfi_dma_ops;

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
