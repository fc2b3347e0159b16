// SPDX-License-Identifier: GPL-2.0

//! What mapped lists have in common.

use kernel::bindings;

use super::{
    joints::Joints,
    mapped::MappedSg, //
};
use crate::device::Device;

/// A DMA mapped list of segments, from which a region can be made.
///
/// # Safety
///
/// - [`DmaList::with_raw`] must lend a scatterlist of which at least [`DmaList::count`] entries,
///   not 0, are mapped for each device of which [`DmaList::is_for`] says so.
/// - They, and the memory behind them, must stay so until what [`DmaList::into_mapping`] returned
///   is dropped; if it is leaked, for ever.
/// - [`DmaList::joints`] must be where these entries meet.
pub unsafe trait DmaList: Sized {
    /// Whether the list is mapped for this device.
    fn is_for(&self, device: &Device) -> bool;

    /// Lends the first entry for a moment.
    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T;

    /// The number of mapped entries.
    fn count(&self) -> u32;

    /// What is to be known of where its entries meet, for pages larger than `base`. Any context.
    fn joints(&self, base: u32) -> Joints {
        // SAFETY: The list has so many mapped entries, by the requirements of this trait.
        self.with_raw(|first| unsafe { Joints::of(first, self.count(), base) })
    }

    /// Whether a region that was made of it, and has this length, has all of it. That all of its entries were mapped is
    /// enough, but where there may be such as should not be there.
    fn is_all(&self, _length: u64) -> bool {
        true
    }

    /// Whether what it was made of is this memory for as long as there is any: addresses of the linear map are, those of
    /// other mappings may have other pages behind them one day.
    fn is_linear(&self) -> bool {
        false
    }

    /// Gives up the list for what keeps it mapped.
    fn into_mapping(self) -> Mapping;
}

/// What keeps memory mapped for a device while a region uses it.
///
/// Dropping it undoes the mapping, if it is one of this crate's ([`MappedSg`]). A mapping of
/// somebody else's is undone by them, after the region has been closed. Doesn't sleep.
#[must_use]
pub struct Mapping {
    list: Option<MappedSg>,
}

impl Mapping {
    /// The mapping of a list of this crate's; [`None`] if it is somebody else's, or if the device takes
    /// kernel addresses.
    pub(crate) fn of(list: Option<MappedSg>) -> Self {
        Self { list }
    }

    /// Leaves it mapped for good: the device may use it at any time. Only the device isn't held
    /// any more, which would keep it from going away.
    pub(crate) fn leak(self) {
        if let Some(list) = self.list {
            list.leak();
        }
    }
}

// SAFETY: By the type invariant the list is mapped for the device, until dropped; `Run` demands that
// the memory stays. The mapping is the list itself, or nothing where entries need none.
unsafe impl DmaList for MappedSg {
    fn is_for(&self, device: &Device) -> bool {
        match self.device() {
            Some(own) => own.is_same(device),
            None => device.is_software(),
        }
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        f(self.list.as_raw())
    }

    fn count(&self) -> u32 {
        self.list.mapped()
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(self.device().is_some().then_some(self))
    }
}
