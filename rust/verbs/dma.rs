// SPDX-License-Identifier: GPL-2.0

//! Mapping of consumers' scatterlists for a domain's device.
//!
//! None of this sleeps but for a lock, for a moment.

use crate::{
    domain::Domain,
    refused, //
};
use kernel::dma::DataDirection;
use kfabric::{
    provider::{
        Dma,
        RawSgl, //
    },
    Refusal, //
};
use rdma::dma;

impl Dma for Domain {
    fn map(&self, list: RawSgl<'_>, direction: DataDirection) -> Result<usize, Refusal> {
        let inside = self.link().gate().enter().ok_or(refused::gone())?;
        let device = inside.get().device();
        // SAFETY: `list` has `entries()` entries by the invariant of `RawSgl`; by the contract of
        // `struct kfi_dma_ops` the consumer unmaps it before it or its memory goes.
        unsafe { dma::map_sg(device, list.as_ptr(), entries(&list), direction) }
            .map_err(refused::not_mapped)
    }

    fn unmap(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link().with_device(|device| {
            // SAFETY: `list` was mapped with so many entries, by the invariant of `RawSgl`.
            unsafe { dma::unmap_sg(device, list.as_ptr(), entries(&list), direction) };
        });
    }

    fn sync_for_cpu(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link().with_device(|device| {
            // SAFETY: `list` is mapped with so many entries, by the invariant of `RawSgl`.
            unsafe { dma::sync_for_cpu(device, list.as_ptr(), entries(&list), direction) };
        });
    }

    fn sync_for_device(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link().with_device(|device| {
            // SAFETY: `list` is mapped with so many entries, by the invariant of `RawSgl`.
            unsafe { dma::sync_for_device(device, list.as_ptr(), entries(&list), direction) };
        });
    }
}

fn entries(list: &RawSgl<'_>) -> usize {
    usize::try_from(list.entries()).unwrap_or(0)
}
