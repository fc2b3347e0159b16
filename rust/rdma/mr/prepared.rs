// SPDX-License-Identifier: GPL-2.0

//! Regions that have memory, but are not valid yet.

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

use core::ptr::null_mut;

use super::fast::FastMr;
use crate::{
    access::AccessFlags,
    pd::Pd,
    sg::{
        DmaList,
        Layout, //
    }, //
};

/// A region that has its memory and rights, ready to be registered. No peer can reach it yet.
///
/// Dropping it deregisters the region and drops the list, and may sleep.
pub struct PreparedMr<L> {
    pub(super) mr: FastMr,
    pub(super) list: L,
}

/// [`PAGE_SIZE`] less one, the bits that are the offset in a page.
// CAST: No page is that big.
const OFFSET_MASK: u64 = PAGE_SIZE as u64 - 1;

impl<L: DmaList> PreparedMr<L> {
    /// Returns the protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        self.mr.pd()
    }

    /// Returns the rights that the region will give.
    pub fn access(&self) -> AccessFlags {
        self.mr.access()
    }

    /// Returns the address by which peers will reach the first byte.
    ///
    /// Unless it has been set, it is a DMA address, and so, on a software device, a kernel address.
    pub fn iova(&self) -> u64 {
        // SAFETY: The region is there, and changes by way of an exclusive reference only.
        unsafe { (*self.as_raw()).iova }
    }

    /// Returns the key for peers that the region has, or had last.
    pub fn rkey(&self) -> u32 {
        // SAFETY: `as_raw()` is a valid region as long as `self`, and changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).rkey }
    }

    /// Returns the key for local work requests that the region has, or had last.
    pub fn lkey(&self) -> u32 {
        // SAFETY: `as_raw()` is a valid region as long as `self`, and changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).lkey }
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        self.mr.raw.length()
    }

    /// Sets the address by which peers will reach the first byte to `base`, plus the memory's
    /// offset in its page. That is the device's page or the machine's, whichever is larger: devices
    /// take the offset from the address' low bits. With a [`Layout`] it is less than the machine's
    /// page.
    ///
    /// [`EINVAL`] if `base` is 0 or not at the start of a page, or if the region would wrap.
    pub fn set_base(&mut self, base: u64) -> Result {
        let mask = self.mr.offset_mask();
        if base == 0 || base & mask != 0 {
            return Err(EINVAL);
        }
        let iova = base + (self.iova() & mask);
        iova.checked_add(self.length()).ok_or(EINVAL)?;
        // SAFETY: The region is there and ours alone, and the device doesn't use it yet.
        unsafe { (*self.as_raw()).iova = iova };
        Ok(())
    }

    /// Takes region and list apart again.
    pub fn unmap(self) -> (FastMr, L) {
        (self.mr, self.list)
    }

    /// Gives the region the next key.
    pub(crate) fn next_key(&mut self) {
        self.mr.next_key();
    }

    /// Returns the raw region.
    pub(crate) fn as_raw(&self) -> *mut rdma_bindings::ib_mr {
        self.mr.raw.as_raw()
    }

    /// Leaves region and mapping to the device for good. The device may register the region at any
    /// time.
    pub(crate) fn leak(self) {
        self.mr.raw.leak();
        self.list.into_mapping().leak();
    }

    /// Deregisters the region, and returns the list. The device may have registered the region or
    /// not.
    ///
    /// If that fails the list is leaked.
    pub(crate) fn abandon(self) -> Option<L> {
        match self.mr.raw.deregister() {
            Ok(()) => Some(self.list),
            Err(_) => {
                self.list.into_mapping().leak();
                None
            }
        }
    }
}

impl FastMr {
    /// Gives the region its memory and its rights.
    ///
    /// All of the list must fit, or nothing is done. May sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`]: a gap, too many pages, a region of large pages, or a list of another device.
    /// - [`EINVAL`]: rights that don't go together, or [that it may not have](Self::may_have).
    /// - [`EOVERFLOW`]: the region is spent.
    /// - The errors of the driver.
    pub fn map<L: DmaList>(
        self,
        list: L,
        access: AccessFlags,
    ) -> Result<PreparedMr<L>, MapError<L>> {
        if self.is_spent() {
            return Err(MapError {
                error: EOVERFLOW,
                mapped: 0,
                mr: self,
                list,
            });
        }
        self.map_again(list, access, None)
    }

    /// Maps a list as [`FastMr::map`] does, but of larger pages, if the region needs no more of
    /// them. Only a region that was never registered may have them. A region of [large
    /// pages](super::Kind::LargePages) may always have pages of its size.
    ///
    /// After an error the state of the region is unknown: it must be dropped, which deregisters it.
    /// rxe, for one, has allocated a table for the larger pages by then, or has none any more.
    pub fn map_larger<L: DmaList>(
        mut self,
        list: L,
        access: AccessFlags,
        layout: Layout,
    ) -> Result<PreparedMr<L>, L> {
        match self.map_list(&list, access, Some(layout.page_size())) {
            Ok(()) if !self.is_spent() => Ok(PreparedMr { mr: self, list }),
            _ => Err(list),
        }
    }

    /// Maps a list as [`FastMr::map`] does, but for the key that the region has, and of pages of
    /// this size if one is given.
    pub(super) fn map_again<L: DmaList>(
        mut self,
        list: L,
        access: AccessFlags,
        page_size: Option<u32>,
    ) -> Result<PreparedMr<L>, MapError<L>> {
        match self.map_list(&list, access, page_size) {
            Ok(()) => Ok(PreparedMr { mr: self, list }),
            Err((error, mapped)) => Err(MapError {
                error,
                mapped,
                mr: self,
                list,
            }),
        }
    }

    /// Returns the size of the region's pages, a power of two since it was mapped.
    pub(super) fn page_size(&self) -> u32 {
        // SAFETY: The region is there, and changes by way of an exclusive reference only.
        unsafe { (*self.raw.as_raw()).page_size }
    }

    /// Returns the bits of an address that are the offset in a page, its own or the machine's,
    /// whichever is larger.
    pub(super) fn offset_mask(&self) -> u64 {
        OFFSET_MASK | u64::from(self.page_size().wrapping_sub(1))
    }

    /// Maps the list and takes the rights, or returns an error and how many entries could be mapped.
    fn map_list<L: DmaList>(
        &mut self,
        list: &L,
        access: AccessFlags,
        page_size: Option<u32>,
    ) -> Result<(), (Error, u32)> {
        if !list.is_for(self.pd().device()) {
            return Err((EINVAL, 0));
        }
        access.check().map_err(|err| (err, 0))?;
        if !self.may_have(access) {
            return Err((EINVAL, 0));
        }

        let count = c_int::try_from(list.count()).map_err(|err| (err.into(), 0))?;
        let base = self.pd().device().page_size().ok_or((EINVAL, 0))?;
        let page_size = page_size.unwrap_or(base);
        if !self.may_have_pages(page_size, base) {
            return Err((EINVAL, 0));
        }
        // SAFETY: The region is there and not in use by the device, by the type invariant; the
        // list has that many mapped entries, as `DmaList` demands.
        let mapped = list.with_raw(|first| unsafe {
            rdma_bindings::ib_map_mr_sg(self.raw.as_raw(), first, count, null_mut(), page_size)
        });
        match u32::try_from(mapped) {
            Ok(mapped) if mapped == list.count() && list.is_all(self.raw.length()) => {
                self.set_access(access);
                Ok(())
            }
            Ok(mapped) => Err((EINVAL, mapped)),
            Err(_) => Err((Error::from_errno(mapped), 0)),
        }
    }
}

/// A region that could not be mapped, with all that went in.
pub struct MapError<L> {
    /// Why.
    pub error: Error,
    /// How many of the list's entries could be mapped, so the index of the one that couldn't.
    pub mapped: u32,
    /// The region.
    pub mr: FastMr,
    /// The list.
    pub list: L,
}
