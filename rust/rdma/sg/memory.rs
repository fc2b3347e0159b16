// SPDX-License-Identifier: GPL-2.0

//! Mapped lists, and the mappings that keep the memory mapped.

use super::{
    builder::{
        Run,
        SgBuilder, //
    },
    layout::{
        Layout,
        SegmentBoundaries, //
    },
    table::Table, //
};
use crate::{
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
///   dropped, or forever if it is leaked. A type that ends its mapping when it is dropped must not
///   have the default of that function.
/// - [`DmaList::boundaries`] must return the boundaries of these entries.
pub unsafe trait DmaList: Sized {
    /// Checks whether the list is mapped for this device.
    fn is_for(&self, device: &Device) -> bool;

    /// Lends the first entry for a moment.
    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T;

    /// Returns the number of mapped entries.
    fn count(&self) -> u32;

    /// Returns the boundaries between the entries, for pages larger than `base`. Any context.
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

    /// Consumes the list, and returns the mapping if this crate made one.
    fn into_mapping(self) -> Mapping {
        Mapping(None)
    }
}

impl Layout {
    /// Returns the largest pages that the list permits, if they are larger than the machine's and
    /// useful. Any context.
    ///
    /// A device takes the offset in its first page from the low bits of a region's address, which a
    /// peer sees. So the memory must start in the first machine page of that device page. Then the
    /// peer sees only the offset in a page of the machine.
    #[inline]
    pub fn larger<L: DmaList>(device: &Device, list: &L) -> Option<Self> {
        Self::of(device, list, 0, Self::MAX)
    }

    /// Returns the layout for a region of large pages, which have one size. Any context.
    #[inline]
    pub fn large<L: DmaList>(device: &Device, list: &L) -> Option<Self> {
        Self::of(device, list, Self::LARGE.into(), Self::LARGE.into())
    }

    #[inline]
    fn of<L: DmaList>(device: &Device, list: &L, least: u64, most: u64) -> Option<Self> {
        let base = device.page_size()?;
        list.boundaries(base)
            .layout(device.page_sizes(), base, least, most)
    }
}

/// The mapping of memory for a device while a region uses it.
///
/// Dropping it undoes the mapping if this crate made it. The consumer undoes other mappings, after
/// the region has been closed. Does not sleep.
#[must_use]
pub struct Mapping(Option<MappedSg>);

impl Mapping {
    /// Leaves the memory mapped for good, because the device may use it at any time. Releases the
    /// device, which would not go away otherwise.
    pub(crate) fn leak(self) {
        if let Some(mut list) = self.0 {
            drop(list.take_device());
            leak(list);
        }
    }
}

/// A list of mapped entries. Dropping it frees it, and unmaps it if this crate mapped it. Does not
/// sleep.
///
/// # Invariants
///
/// - `mapped` entries of `table`, not 0, are mapped. They stay mapped until the list is dropped, or
///   until all regions made of it have been closed.
/// - If the `device` of `table` is null, the entries hold kernel addresses. Otherwise it is a
///   reference to the device that they are mapped for.
/// - If there is a device, and `dir` is not `DMA_NONE`, this crate mapped `used` entries in that
///   direction.
pub struct MappedSg {
    table: Table,
}

impl MappedSg {
    /// Completes a list with `mapped` mapped entries. Without `device` they hold kernel addresses.
    /// The direction is [`DataDirection::None`] if the consumer mapped them.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for the arguments.
    pub(super) unsafe fn new(
        mut table: Table,
        mapped: u32,
        device: Option<&ARef<Device>>,
        dir: DataDirection,
    ) -> Self {
        let head = table.head_mut();
        (head.mapped, head.dir) = (mapped, dma::raw(dir));
        head.device = device.map_or(null_mut(), |device| {
            ARef::into_raw(device.clone()).as_ptr().cast()
        });
        // INVARIANT: The type invariants hold by the function's contract.
        Self { table }
    }

    /// Returns the device that the entries are mapped for, or [`None`] for kernel addresses.
    fn device(&self) -> Option<&Device> {
        // SAFETY: `device` is null or a reference to a device by the type invariant.
        unsafe { self.table.head().device.cast::<Device>().as_ref() }
    }

    /// Takes the device out of the list, which is not unmapped then.
    fn take_device(&mut self) -> Option<ARef<Device>> {
        let device = mem::replace(&mut self.table.head_mut().device, null_mut());
        // SAFETY: `device` is null or a reference by the type invariant, and was taken out.
        NonNull::new(device.cast()).map(|device| unsafe { ARef::from_raw(device) })
    }

    /// Checks whether this crate mapped the list.
    fn is_own(&self) -> bool {
        let head = self.table.head();
        !head.device.is_null() && head.dir != dma::raw(DataDirection::None)
    }
}

impl Drop for MappedSg {
    fn drop(&mut self) {
        let is_own = self.is_own();
        let Some(device) = self.take_device().filter(|_| is_own) else {
            return;
        };
        let head = self.table.head();
        let count = c_int::try_from(head.used).unwrap_or(c_int::MAX);
        // SAFETY: The list was mapped for `device` with these arguments by the type invariant. No
        // device uses it, since a region keeps the list that it is made of.
        unsafe {
            rdma_bindings::rdma_helper_dma_unmap_sg(
                device.as_raw(),
                self.table.first(),
                count,
                head.dir,
            )
        };
    }
}

impl SgBuilder {
    /// Ends the list, and maps it for the device that it was begun for. Does not sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`] if the list is empty, or was begun for a device that takes kernel addresses,
    ///   and `device` does not.
    /// - [`EIO`] if the list cannot be mapped.
    pub fn map(self, device: &ARef<Device>, dir: DataDirection) -> Result<Memory> {
        let table = self.done()?;
        let count = table.head().used;
        let (mapped, own) = match (table.head().virt, device.is_software()) {
            (true, true) => (count, None),
            (true, false) => return Err(EINVAL),
            (false, _) => {
                let (first, count) = (table.first(), usize::try_from(count)?);
                // SAFETY: `first` heads a list of `count` entries that only `table` uses. The list
                // is unmapped before it is freed and `device` released. `Run` and `fill()` demand
                // that its pages stay.
                let mapped = unsafe { dma::map_sg(device, first, count, dir) }?;
                (u32::try_from(mapped)?, Some(device))
            }
        };
        // SAFETY: `mapped` entries have just been mapped for `own`, or hold kernel addresses.
        Ok(Memory::Mapped(unsafe {
            MappedSg::new(table, mapped, own, dir)
        }))
    }
}

/// A run of memory as a list of one entry, for devices that take kernel addresses.
///
/// It takes no memory, and has no mapping to undo.
///
/// # Invariants
///
/// `address` is the linear-map address of a [`Run`], and `len` its length.
pub struct SingleSg {
    address: u64,
    len: u32,
}

impl SingleSg {
    /// Creates the list. Returns [`None`] if the device takes other addresses, or no entry of this
    /// length. Any context.
    #[inline]
    pub fn new(device: &Device, run: &Run) -> Option<Self> {
        let len = u32::try_from(run.0.len).ok()?;
        if !device.is_software() || len > device.max_segment_size() {
            return None;
        }
        // INVARIANT: The memory of a `Run` has pages, so it has an address in the linear map if the
        // device takes kernel addresses.
        Some(Self {
            // SAFETY: The helper accepts every address.
            address: unsafe { rdma_bindings::rdma_helper_linear(run.0.phys) },
            len,
        })
    }
}

// SAFETY: By the type invariant the entry is the same as in a list that is mapped for any device
// that takes kernel addresses. `Run` demands that the memory stays. The entry is made anew for each
// use, and needs no mapping.
unsafe impl DmaList for SingleSg {
    fn is_for(&self, device: &Device) -> bool {
        device.is_software()
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        let mut entry = MaybeUninit::uninit();
        // SAFETY: `entry` has space for an entry.
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
}

/// The memory of a region, as a list that can be kept.
pub enum Memory {
    /// Mapped here or by the consumer.
    Mapped(MappedSg),
    /// One run, for a device that takes kernel addresses.
    Single(SingleSg),
}

// SAFETY: `table` of a `MappedSg` has `mapped` entries by its type invariant. They are mapped for
// its device, or hold kernel addresses. They stay mapped until the list is dropped. If this crate
// mapped the list, the `Mapping` keeps it. `SingleSg` keeps the contract itself.
unsafe impl DmaList for Memory {
    fn is_for(&self, device: &Device) -> bool {
        match self {
            Self::Mapped(list) => match list.device() {
                Some(own) => own.is_same(device),
                None => device.is_software(),
            },
            Self::Single(list) => list.is_for(device),
        }
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        match self {
            Self::Mapped(list) => f(list.table.first()),
            Self::Single(list) => list.with_raw(f),
        }
    }

    fn count(&self) -> u32 {
        match self {
            Self::Mapped(list) => list.table.head().mapped,
            Self::Single(list) => list.count(),
        }
    }

    fn is_linear(&self) -> bool {
        matches!(self, Self::Single(_))
    }

    fn into_mapping(self) -> Mapping {
        Mapping(match self {
            Self::Mapped(list) if list.is_own() => Some(list),
            _ => None,
        })
    }
}

/// Keeps a value forever: never drops it, and hides its memory from kmemleak. If there is no memory
/// for that, kmemleak may report the value. May sleep.
pub(crate) fn leak<T>(value: T) {
    if let Ok(kept) = KBox::new(ManuallyDrop::new(value), GFP_KERNEL) {
        // SAFETY: The box is an allocation. kmemleak finds the memory that `value` owns from there.
        unsafe { rdma_bindings::rdma_helper_not_leak(KBox::into_raw(kept).cast()) };
    }
}
