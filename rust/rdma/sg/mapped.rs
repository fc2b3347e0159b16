// SPDX-License-Identifier: GPL-2.0

//! Scatterlists mapped for a device.

use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::aref::ARef, //
};

use super::list::SgList;
use crate::{
    device::Device,
    dma,
    leak::leak, //
};

/// A scatterlist that is mapped for a device. Dropping it unmaps and frees it, without sleeping.
///
/// # Invariants
///
/// `list` has as many mapped entries as it knows, not 0. It is mapped for the device that it has, in the
/// direction that it knows; or it has none, and its entries are those of any device that takes kernel addresses,
/// for which nothing was done.
pub struct MappedSg {
    pub(super) list: SgList,
}

impl SgList {
    /// Maps the list for the device that it was begun for. [`EIO`] if that is not possible. Doesn't
    /// sleep.
    pub fn map(self, device: &ARef<Device>, dir: DataDirection) -> Result<MappedSg> {
        MappedSg::new(self, device, dir)
    }
}

impl MappedSg {
    /// Maps a list. [`EIO`] if that is not possible.
    fn new(mut list: SgList, device: &ARef<Device>, dir: DataDirection) -> Result<Self> {
        if list.is_virt() {
            if !device.is_software() {
                return Err(EINVAL);
            }
            list.set_mapped(list.count(), dma::raw(dir));
            // INVARIANT: Entries are as they would be mapped, each for itself.
            return Ok(Self { list });
        }
        // SAFETY: The list has that many entries, is ours alone, and is unmapped in `drop()`,
        // before it is freed and the device let go of. Its pages stay, as `Run` demands.
        let mapped = unsafe { dma::map_sg(device, list.as_raw(), entries(&list), dir) }?;

        list.set_mapped(u32::try_from(mapped)?, dma::raw(dir));
        list.set_device(device.clone());
        // INVARIANT: This is what has just been mapped.
        Ok(Self { list })
    }

    /// The device that has it mapped; [`None`] if nothing was done, so that there is nothing to undo.
    pub(super) fn device(&self) -> Option<&Device> {
        self.list.device()
    }

    /// Never unmaps or frees the list, but lets go of the device.
    pub(super) fn leak(mut self) {
        drop(self.list.take_device());
        leak(self);
    }
}

/// The number of entries that a list is mapped with.
fn entries(list: &SgList) -> usize {
    usize::try_from(list.count()).unwrap_or(usize::MAX)
}

impl Drop for MappedSg {
    fn drop(&mut self) {
        let Some(device) = self.list.take_device() else {
            return;
        };
        // SAFETY: By the type invariant these are the arguments it was mapped with. No device
        // uses it, since a region keeps the list that it is made of.
        unsafe {
            dma::unmap_raw(
                &device,
                self.list.as_raw(),
                entries(&self.list),
                self.list.direction(),
            )
        };
    }
}
