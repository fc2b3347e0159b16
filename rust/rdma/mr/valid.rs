// SPDX-License-Identifier: GPL-2.0

//! Regions that peers can reach.

use super::fast::{
    FastMr,
    Kind,
    PreparedMr, //
};
use crate::{
    prelude::*,
    sg::Mapping, //
};

/// A region that is valid at the device: who knows its key reaches its memory.
///
/// To be closed by [`LocalQp::revoke_all`](crate::LocalQp::revoke_all) or
/// [`ValidMr::deregister`], which may sleep and can fail. Dropping it deregisters it as well, for
/// error paths; leaking it leaves the memory reachable, so the mapping is leaked with it.
///
/// # Invariants
///
/// The region's memory is mapped by `mapping`. The device may use both until the region has been
/// fenced.
pub struct ValidMr {
    mr: ManuallyDrop<FastMr>,
    mapping: ManuallyDrop<Mapping>,
}

impl<L: DmaList> PreparedMr<L> {
    /// Makes the region valid.
    ///
    /// # Safety
    ///
    /// The device must have carried out its registration.
    pub(crate) unsafe fn into_valid(self) -> ValidMr {
        // INVARIANT: The mapping is of the list that the region was mapped with.
        ValidMr {
            mr: ManuallyDrop::new(self.mr),
            mapping: ManuallyDrop::new(self.list.into_mapping()),
        }
    }
}

impl ValidMr {
    /// Returns the protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        self.mr.pd()
    }

    /// Returns the rights that the region gives.
    pub fn access(&self) -> AccessFlags {
        self.mr.access()
    }

    /// Returns the kind of memory that the region may have.
    pub fn kind(&self) -> Kind {
        self.mr.kind()
    }

    /// Returns the maximum number of pages.
    pub fn max_pages(&self) -> u32 {
        self.mr.max_pages()
    }

    /// Returns the key for peers.
    pub fn rkey(&self) -> u32 {
        // SAFETY: `as_raw()` is a valid region as long as `self`. The key changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).rkey }
    }

    /// Returns the key for local work requests.
    pub fn lkey(&self) -> u32 {
        // SAFETY: `as_raw()` is a valid region as long as `self`. The key changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).lkey }
    }

    /// Returns the address of the first byte, for both keys.
    pub fn iova(&self) -> u64 {
        // SAFETY: `as_raw()` is a valid region as long as `self`. The address changes only through
        // an exclusive reference.
        unsafe { (*self.as_raw()).iova }
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        self.mr.raw.length()
    }

    /// Deregisters the region and undoes its mapping: when this has succeeded, no peer can reach
    /// its memory, on any device. May sleep, on a software device as long as a peer's access is
    /// under way.
    ///
    /// An error means that the device would not let go of it: region and mapping have been leaked,
    /// and the memory must never be freed.
    #[inline]
    pub fn deregister(self) -> Result {
        let (mr, mapping) = self.into_parts();
        match mr.raw.deregister() {
            Ok(()) => {
                drop(mapping);
                Ok(())
            }
            Err(error) => {
                mapping.leak();
                Err(error)
            }
        }
    }

    /// Frees the region and its memory.
    ///
    /// # Safety
    ///
    /// The device must have invalidated the region, and that must be a fence on this device.
    pub(crate) unsafe fn into_free(self) -> FastMr {
        let (mr, mapping) = self.into_parts();
        drop(mapping);
        mr
    }

    /// Frees the region and its memory, but keeps its key and address for other memory.
    ///
    /// # Safety
    ///
    /// The device must have invalidated the region, and that must be a fence on this device.
    pub(crate) unsafe fn into_suspended(self) -> SuspendedMr {
        let (iova, length) = (self.iova(), self.length());
        // SAFETY: The device has invalidated the region, and that is a fence on it, as the caller
        // promises.
        let mr = unsafe { self.into_free() };
        SuspendedMr::new(mr, iova, length)
    }

    fn as_raw(&self) -> *mut rdma_bindings::ib_mr {
        self.mr.raw.as_raw()
    }

    /// Takes region and mapping out, without fencing.
    fn into_parts(self) -> (FastMr, Mapping) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again, so each is taken once.
        unsafe {
            (
                ManuallyDrop::take(&mut this.mr),
                ManuallyDrop::take(&mut this.mapping),
            )
        }
    }
}

impl Drop for ValidMr {
    fn drop(&mut self) {
        // SAFETY: This is the last use of the region and of the mapping.
        let (mr, mapping) = unsafe {
            (
                ManuallyDrop::take(&mut self.mr),
                ManuallyDrop::take(&mut self.mapping),
            )
        };
        match mr.raw.deregister() {
            Ok(()) => drop(mapping),
            // The device may still use it.
            Err(_) => mapping.leak(),
        }
    }
}

/// A region that has been invalidated, and is to get other memory behind the same key, at the same
/// address and with the same rights. No peer can reach anything by it.
///
/// Dropping it deregisters it, and may sleep.
pub(crate) struct SuspendedMr {
    mr: FastMr,
    iova: u64,
    length: u64,
}

impl SuspendedMr {
    pub(super) fn new(mr: FastMr, iova: u64, length: u64) -> Self {
        Self { mr, iova, length }
    }

    /// Gives the region its new memory, of pages as large as those of the old. May sleep.
    ///
    /// [`EINVAL`] if that is not as long as the old, or starts elsewhere in its page, or what
    /// [`FastMr::map`] says; the region is deregistered then.
    pub(crate) fn map<L: DmaList>(self, list: L) -> Result<PreparedMr<L>> {
        let (access, page_size) = (self.mr.access(), self.mr.page_size());
        let base = self.iova & !self.mr.offset_mask();
        let mut prepared = self
            .mr
            .map_again(list, access, Some(page_size))
            .map_err(|failed| failed.error)?;
        prepared.set_base(base)?;
        if prepared.iova() != self.iova || prepared.length() != self.length {
            return Err(EINVAL);
        }
        Ok(prepared)
    }
}
