// SPDX-License-Identifier: GPL-2.0

//! Mapping for providers that have no device.

use crate::{
    provider::dma::{
        Dma,
        RawSgl, //
    },
    support::{
        errno::Errno,
        num::index,
        refusal::Refusal, //
    }, //
};
use kernel::dma::DataDirection;

/// DMA without a device: the addresses in a mapped list are the processor's physical ones, and
/// [`CpuMemory`](crate::region::extent::CpuMemory) reaches them.
pub struct Direct;

impl Dma for Direct {
    fn map(&self, list: RawSgl<'_>, _direction: DataDirection) -> Result<usize, Refusal> {
        // SAFETY: By the invariant of `RawSgl`.
        if !unsafe { kfi_bindings::kfi_helper_sg_map_direct(list.as_ptr(), list.entries()) } {
            return Err(Refusal::new(
                Errno::EIO,
                c"a list with an entry without a page",
            ));
        }
        Ok(index(list.entries().unsigned_abs()))
    }

    // The processor always sees what the processor wrote.
    fn unmap(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
    fn sync_for_cpu(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
    fn sync_for_device(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
}
