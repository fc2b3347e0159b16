// SPDX-License-Identifier: GPL-2.0

//! Mapping of scatterlists by the provider for the unit tests.

use super::{
    FakeDomain,
    MAPPED,
    TOO_MANY, //
};
use crate::{
    provider::{
        Dma,
        RawSgl, //
    },
    support::refusal::Refusal, //
};
use kernel::{
    dma::DataDirection,
    sync::atomic::Relaxed, //
};

impl Dma for FakeDomain {
    /// Maps one entry.
    fn map(&self, list: RawSgl<'_>, _direction: DataDirection) -> Result<usize, Refusal> {
        // SAFETY: The list is ours for the call.
        let entry = unsafe { &mut *list.as_ptr() };
        entry.dma_address = 0x10000;
        #[cfg(CONFIG_NEED_SG_DMA_LENGTH)]
        {
            entry.dma_length = entry.length;
        }
        MAPPED.fetch_add(list.entries(), Relaxed);
        match TOO_MANY.xchg(false, Relaxed) {
            false => Ok(1),
            true => Ok(1000),
        }
    }

    fn unmap(&self, list: RawSgl<'_>, _direction: DataDirection) {
        MAPPED.fetch_sub(list.entries(), Relaxed);
    }

    fn sync_for_cpu(&self, _list: RawSgl<'_>, _direction: DataDirection) {}

    fn sync_for_device(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
}
