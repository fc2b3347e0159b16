// SPDX-License-Identifier: GPL-2.0

//! Scatterlists mapped for a device.

use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::aref::ARef, //
};

use core::mem::ManuallyDrop;

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
/// `list` is mapped for `device` in the direction that it knows, and has as many mapped entries as it knows,
/// not 0. If its entries are those of a device that takes kernel addresses, so is the device, and nothing was
/// done for that.
pub struct MappedSg {
    pub(super) list: SgList,
    pub(super) device: ARef<Device>,
}

impl SgList {
    /// Maps the list for the device that it was begun for. [`EIO`] if that is not possible. Doesn't
    /// sleep.
    pub fn map(self, device: &ARef<Device>, dir: DataDirection) -> Result<MappedSg> {
        MappedSg::new(self, device.clone(), dir)
    }
}

impl MappedSg {
    /// Maps a list. [`EIO`] if that is not possible.
    fn new(mut list: SgList, device: ARef<Device>, dir: DataDirection) -> Result<Self> {
        if list.is_virt() {
            if !device.is_software() {
                return Err(EINVAL);
            }
            list.set_mapped(list.count(), dma::raw(dir));
            // INVARIANT: Entries are as they would be mapped, each for itself.
            return Ok(Self { list, device });
        }
        // SAFETY: The list has that many entries, is ours alone, and is unmapped in `drop()`,
        // before it is freed and the device let go of. Its pages stay, as `Run` demands.
        let mapped = unsafe { dma::map_sg(&device, list.as_raw(), entries(&list), dir) }?;

        list.set_mapped(u32::try_from(mapped)?, dma::raw(dir));
        // INVARIANT: This is what has just been mapped.
        Ok(Self { list, device })
    }

    /// Is there a mapping, so that there is something to undo?
    pub(super) fn is_made(&self) -> bool {
        !self.list.is_virt()
    }

    /// Never unmaps or frees the list, but lets go of the device.
    pub(super) fn leak(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, and its device not used any more, so this is the only copy.
        drop(unsafe { core::ptr::read(&this.device) });
        leak(this);
    }
}

/// The number of entries that a list is mapped with.
fn entries(list: &SgList) -> usize {
    usize::try_from(list.count()).unwrap_or(usize::MAX)
}

impl Drop for MappedSg {
    fn drop(&mut self) {
        if !self.is_made() {
            return;
        }
        // SAFETY: By the type invariant these are the arguments it was mapped with. No device
        // uses it, since a region keeps the list that it is made of.
        unsafe {
            dma::unmap_raw(
                &self.device,
                self.list.as_raw(),
                entries(&self.list),
                self.list.direction(),
            )
        };
    }
}
