// SPDX-License-Identifier: GPL-2.0

//! Regions that peers can reach.

use super::fast::{
    FastMr,
    PreparedMr, //
};
use crate::{
    prelude::*,
    sg::Mapping, //
};
use core::ops::Deref;

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

impl Deref for ValidMr {
    type Target = FastMr;

    fn deref(&self) -> &FastMr {
        &self.mr
    }
}

impl ValidMr {
    /// Deregisters the region and undoes its mapping: when this has succeeded, no peer can reach
    /// its memory, on any device. May sleep, on a software device as long as a peer's access is
    /// under way.
    ///
    /// An error means that the device would not let go of it: region and mapping have been leaked,
    /// and the memory must never be freed.
    #[inline]
    pub fn deregister(self) -> Result {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        unsafe { this.end() }
    }

    /// Implements [`deregister`](Self::deregister).
    ///
    /// # Safety
    ///
    /// This must be the last use of `self`.
    unsafe fn end(&mut self) -> Result {
        // SAFETY: This is the last use of `self` by the function's contract, so each is taken once.
        let (mr, mapping) = unsafe { self.take_parts() };
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
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        let (mr, mapping) = unsafe { this.take_parts() };
        drop(mapping);
        mr
    }

    /// Gives the region other memory behind the same key, at the same address and with the same rights, of pages as
    /// large as those of the old. No peer can reach the region. May sleep.
    ///
    /// # Errors
    ///
    /// The region is deregistered then.
    ///
    /// - [`EINVAL`]: the list is not as long as the old one, or starts elsewhere in its page.
    /// - The errors of [`FastMr::map`], except [`EOVERFLOW`].
    ///
    /// # Safety
    ///
    /// The device must have invalidated the region, and that must be a fence on this device.
    pub(crate) unsafe fn remap<L: DmaList>(self, list: L) -> Result<PreparedMr<L>> {
        let (iova, length) = (self.iova(), self.length());
        // SAFETY: The device has invalidated the region, and that is a fence on it, by the function's contract.
        let mr = unsafe { self.into_free() };
        let (access, page_size) = (mr.access(), mr.page_size());
        let base = iova & !mr.offset_mask();
        let prepared = mr.map_again(list, access, Some(page_size));
        let mut prepared = prepared.map_err(|failed| failed.error)?;
        prepared.set_base(base)?;
        if prepared.iova() != iova || prepared.length() != length {
            return Err(EINVAL);
        }
        Ok(prepared)
    }

    /// Takes region and mapping out, without fencing.
    ///
    /// # Safety
    ///
    /// This must be the last use of `self`.
    unsafe fn take_parts(&mut self) -> (FastMr, Mapping) {
        // SAFETY: This is the last use of `self` by the function's contract, so each is taken once.
        unsafe {
            (
                ManuallyDrop::take(&mut self.mr),
                ManuallyDrop::take(&mut self.mapping),
            )
        }
    }
}

impl Drop for ValidMr {
    fn drop(&mut self) {
        // SAFETY: `self` is being dropped, so this is its last use.
        let _ = unsafe { self.end() };
    }
}
