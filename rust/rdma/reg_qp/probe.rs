// SPDX-License-Identifier: GPL-2.0

//! A probe of a device's invalidations.

use super::RegQp;
use crate::{
    mr::Kind,
    prelude::*,
    sg::{
        Run,
        SgBuilder, //
    }, //
};
use kernel::{
    dma::DataDirection,
    page::Page, //
};

/// Where the region that is tried is said to be.
const BASE: u64 = 1 << 32;

impl RegQp {
    /// Registers a page whose key no peer knows, invalidates it, and returns the result of the
    /// invalidation. Some devices offer fast registration, but refuse to invalidate. On a device
    /// [without](crate::Device::has_local_inv) that request, this posts no invalidation, and the
    /// result is EOPNOTSUPP.
    ///
    /// A failure may break the queue pair. Sleeps, uninterruptibly, until the device is done.
    ///
    /// # Errors
    ///
    /// Registering failed.
    pub fn probe(&self) -> Result<Result<(), WrError>, WrError> {
        let page = Page::alloc_page(GFP_KERNEL).map_err(|e| WrError::Post(e.into()))?;
        // Leaked, unless the device is known to be done with it.
        let page = ManuallyDrop::new(page);
        let mut kept = false;
        let result = self.probe_with(&page, &mut kept);
        if !kept {
            drop(ManuallyDrop::into_inner(page));
        }
        result
    }

    /// Probes with this page; sets `kept` if the device may still have it afterwards.
    fn probe_with(&self, page: &Page, kept: &mut bool) -> Result<Result<(), WrError>, WrError> {
        // SAFETY: The page is there, and freed only once no device region has it any more.
        let run = unsafe { Run::of_page(page) };
        let device = &self.pd().device;
        let list = SgBuilder::new(device, 1, None)
            .and_then(|mut list| {
                list.push(&run)?;
                list.map(device, DataDirection::ToDevice)
            })
            .map_err(WrError::Post)?;
        let mut prepared = FastMr::alloc(self.pd(), Kind::Pages, 1)
            .and_then(|mr| {
                mr.map(list, AccessFlags::default())
                    .map_err(|failed| failed.error)
            })
            .map_err(WrError::Post)?;
        prepared.set_base(BASE).map_err(WrError::Post)?;

        let mut invalidated = Err(WrError::Post(errno(bindings::EOPNOTSUPP)));
        let registered = self.register_all(SmallVec::one(prepared), |mr| {
            if device.has_local_inv() {
                invalidated = self.invalidate_key(mr.rkey());
            }
            *kept = mr.deregister().is_err();
        });
        registered.map_err(|failed| {
            *kept = matches!(failed.lists, Err(error) if error == EIO);
            failed.error
        })?;
        Ok(invalidated)
    }
}
