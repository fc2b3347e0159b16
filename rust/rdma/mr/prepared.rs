// SPDX-License-Identifier: GPL-2.0

//! Regions that have memory, but are not valid yet.

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

use super::{
    FastMr,
    ValidMr, //
};
use crate::{
    access::AccessFlags,
    few::Few,
    pd::Pd,
    sg::DmaList,
    wr::WrError, //
};

/// A region that has its memory and rights, ready to be registered. No peer can reach it yet.
///
/// Dropping it deregisters the region and drops the list, and may sleep.
pub struct PreparedMr<L> {
    mr: FastMr,
    list: L,
    access: AccessFlags,
}

/// [`PAGE_SIZE`] less one, the bits that are the offset in a page.
// CAST: No page is that big.
pub(super) const OFFSET_MASK: u64 = PAGE_SIZE as u64 - 1;

impl<L: DmaList> PreparedMr<L> {
    pub(super) fn new(mr: FastMr, list: L, access: AccessFlags) -> Self {
        Self { mr, list, access }
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        self.mr.pd()
    }

    /// The rights that it will give.
    pub fn access(&self) -> AccessFlags {
        self.access
    }

    /// The address by which peers will reach the first byte.
    ///
    /// Unless it has been set, it is a DMA address, and so, on a software device, a kernel address.
    pub fn iova(&self) -> u64 {
        // SAFETY: The region is there, and changes by way of an exclusive reference only.
        unsafe { (*self.as_raw()).iova }
    }

    /// The length in bytes.
    pub fn length(&self) -> u64 {
        // SAFETY: As for the address.
        unsafe { (*self.as_raw()).length }
    }

    /// Sets the address by which peers will reach the first byte to `base`, plus what the memory's
    /// start is into its page: devices take that from the address' low bits.
    ///
    /// [`EINVAL`] if `base` is 0 or not at the start of a page, or if the region would wrap.
    pub fn set_base(&mut self, base: u64) -> Result {
        if base == 0 || base & OFFSET_MASK != 0 {
            return Err(EINVAL);
        }
        let iova = base + (self.iova() & OFFSET_MASK);
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

    /// The raw region.
    pub(crate) fn as_raw(&self) -> *mut rdma_bindings::ib_mr {
        self.mr.raw.as_raw()
    }

    /// The region is valid now.
    ///
    /// # Safety
    ///
    /// The device must have carried out its registration.
    pub(crate) unsafe fn into_valid(self) -> ValidMr {
        ValidMr::new(self.mr, self.list.into_mapping(), self.access)
    }

    /// The device may register the region at any time: leaves region and mapping to it for good.
    pub(crate) fn leak(self) {
        self.mr.raw.leak();
        self.list.into_mapping().leak();
    }

    /// The device may have registered the region or not: deregisters it, and returns the list.
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

/// Why regions could not be registered, with what is left of them.
///
/// They have all been deregistered.
pub struct RegisterError<L> {
    /// Why.
    pub error: WrError,
    /// Their lists in the same order, to be tried again with other regions, after the queue pair
    /// has been replaced if it is [broken](crate::LocalQp::is_broken).
    ///
    /// [`ENOMEM`] if there was no memory for the answer; [`EIO`] if not even deregistering was
    /// possible, so that a list has been leaked: its memory must never be freed.
    pub lists: Result<Few<L>>,
}

/// Deregisters regions of which the device may have registered any, and gives their lists.
pub(crate) fn abandon_all<L: DmaList>(mrs: Few<PreparedMr<L>>) -> Result<Few<L>> {
    let mut lists = Few::with_capacity(mrs.len(), GFP_KERNEL).map_err(Error::from);
    let mut leaked = false;
    for mr in mrs {
        match (mr.abandon(), &mut lists) {
            (Some(list), Ok(lists)) => {
                // There is room.
                let _ = lists.push_within_capacity(list);
            }
            (Some(_), Err(_)) => (),
            (None, _) => leaked = true,
        }
    }
    // That memory is lost for good matters more than why there is no answer.
    if leaked {
        Err(EIO)
    } else {
        lists
    }
}
