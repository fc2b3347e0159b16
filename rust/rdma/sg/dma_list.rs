// SPDX-License-Identifier: GPL-2.0

//! Mapped lists: of pages mapped here, or of one entry.

use super::list::{
    Run,
    SgList, //
};
use crate::{
    device::Device,
    dma,
    prelude::*, //
};
use core::mem::MaybeUninit;
use kernel::dma::DataDirection;

/// A DMA mapped list of segments, from which a region can be made.
///
/// # Safety
///
/// - [`DmaList::with_raw`] must lend a scatterlist with at least [`DmaList::count`] mapped entries,
///   not 0. They must be mapped for each device for which [`DmaList::is_for`] returns true.
/// - The mapping and the memory must stay valid until the result of [`DmaList::into_mapping`] is
///   dropped, or forever if it is leaked.
/// - [`DmaList::boundaries`] must return the boundaries of these entries.
pub unsafe trait DmaList: Sized {
    /// Checks whether the list is mapped for this device.
    fn is_for(&self, device: &Device) -> bool;

    /// Lends the first entry for a moment.
    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T;

    /// Returns the number of mapped entries.
    fn count(&self) -> u32;

    /// Returns the boundaries between its entries, for pages larger than `base`. Any context.
    fn boundaries(&self, base: u32) -> SegmentBoundaries {
        // SAFETY: `first` heads a list of `count()` mapped entries by the contract of this trait.
        self.with_raw(|first| unsafe { SegmentBoundaries::of(first, self.count(), base) })
    }

    /// Checks whether a region of this length covers the whole list. A list without unexpected
    /// entries only needs all of its entries mapped.
    fn is_all(&self, _length: u64) -> bool {
        true
    }

    /// Checks whether the addresses refer to the same memory forever. That is true for the linear
    /// map. Other mappings may later refer to other pages.
    fn is_linear(&self) -> bool {
        false
    }

    /// Gives up the list for what keeps it mapped.
    fn into_mapping(self) -> Mapping;
}

/// The mapping of memory for a device while a region uses it.
///
/// Dropping it undoes the mapping, if it is one of this crate's ([`MappedSg`]). A mapping of
/// somebody else's is undone by them, after the region has been closed. Doesn't sleep.
#[must_use]
pub struct Mapping {
    list: Option<MappedSg>,
}

impl Mapping {
    /// Wraps a list that this crate mapped. [`None`] stands for other mappings, and for devices
    /// that take kernel addresses.
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

    /// Returns the device that the list is mapped for, or [`None`] if there is nothing to unmap.
    pub(super) fn device(&self) -> Option<&Device> {
        self.list.device()
    }

    /// Leaks the list without unmapping it, but drops the device.
    pub(super) fn leak(mut self) {
        drop(self.list.take_device());
        leak(self);
    }
}

/// Returns the number of entries before mapping.
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

/// A run of memory as a list of one entry, for devices that take kernel addresses.
///
/// It takes no memory, and there is nothing to be undone.
///
/// # Invariants
///
/// `address` is that of the linear map, and `len` the length, of a [`Run`].
pub struct SingleSg {
    address: u64,
    len: u32,
}

impl SingleSg {
    /// Makes the list; [`None`] if the device takes other addresses, or no entry as long. Any context.
    #[inline]
    pub fn new(device: &Device, run: &Run) -> Option<Self> {
        let len = u32::try_from(run.0.len).ok()?;
        if !device.is_software() || len > device.max_segment_size() {
            return None;
        }
        // INVARIANT: The memory of a `Run` has pages, so it has an address in the linear map if the
        // device takes kernel addresses.
        Some(Self {
            // SAFETY: May be called with any address.
            address: unsafe { rdma_bindings::rdma_helper_linear(run.0.phys) },
            len,
        })
    }
}

// SAFETY: By the type invariant the entry is as that of a list that is mapped for any device that takes kernel
// addresses; `Run` demands that the memory stays. There is no mapping but the entry itself, which is made
// anew each time.
unsafe impl DmaList for SingleSg {
    fn is_for(&self, device: &Device) -> bool {
        device.is_software()
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        let mut entry = MaybeUninit::uninit();
        // SAFETY: There is room for an entry.
        unsafe { rdma_bindings::rdma_helper_sg_single(entry.as_mut_ptr(), self.address, self.len) };
        f(entry.as_mut_ptr())
    }

    fn count(&self) -> u32 {
        1
    }

    fn boundaries(&self, _base: u32) -> SegmentBoundaries {
        SegmentBoundaries::none(self.address, self.len.into())
    }

    fn is_linear(&self) -> bool {
        true
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}

/// The boundaries between the entries of a mapped list.
pub struct SegmentBoundaries {
    /// The address of the first byte.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// All addresses at which one entry ends or another begins, or-ed.
    pub(super) bits: u64,
}

impl SegmentBoundaries {
    /// Creates the boundaries of a list with one entry.
    #[inline]
    pub(super) fn none(start: u64, bytes: u64) -> Self {
        Self {
            start,
            bytes,
            bits: 0,
        }
    }

    /// Collects the boundaries of a list. Stops early if none can lie in pages larger than `base`.
    /// Any context.
    ///
    /// # Safety
    ///
    /// `first` must be a list of `count` mapped entries, not 0.
    pub(super) unsafe fn of(first: *mut bindings::scatterlist, count: u32, base: u32) -> Self {
        let mut boundaries = Self::none(0, 0);
        // SAFETY: `first` is a list of `count` mapped entries by the function's contract.
        unsafe {
            rdma_bindings::rdma_helper_sg_joints(
                first,
                count,
                base,
                &mut boundaries.start,
                &mut boundaries.bytes,
                &mut boundaries.bits,
            )
        };
        boundaries
    }
}

/// Keeps a value forever: never drops it, and hides its memory from kmemleak. Without memory for
/// that kmemleak may report it. May sleep.
pub(crate) fn leak<T>(value: T) {
    if let Ok(kept) = KBox::new(ManuallyDrop::new(value), GFP_KERNEL) {
        // SAFETY: The box is an allocation. kmemleak finds the memory that `value` owns from there.
        unsafe { rdma_bindings::rdma_helper_not_leak(KBox::into_raw(kept).cast()) };
    }
}
