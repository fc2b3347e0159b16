// SPDX-License-Identifier: GPL-2.0

//! Lists of one entry.

use core::{
    mem::MaybeUninit,
    ops::Deref, //
};
use kernel::{
    bindings,
    sync::aref::ARef, //
};

use super::{
    mapping::{
        DmaList,
        Mapping, //
    },
    run::Run, //
};
use crate::device::Device;

/// What a list may have its device by.
///
/// # Safety
///
/// It must lead to the same device each time.
pub unsafe trait HasDevice: Deref<Target = Device> {}

// SAFETY: A reference doesn't change.
unsafe impl HasDevice for &Device {}

// SAFETY: Nor does a counted one.
unsafe impl HasDevice for ARef<Device> {}

/// A run of memory as a list of one entry, for a device that takes kernel addresses.
///
/// It takes no memory, and there is nothing to be undone.
///
/// # Invariants
///
/// `phys` and `len` are those of a [`Run`], of which `device`, which takes kernel addresses, takes one
/// entry.
pub struct SingleSg<D> {
    phys: u64,
    len: u32,
    device: D,
}

impl<D: HasDevice> SingleSg<D> {
    /// Makes the list; [`None`] if the device takes other addresses, or no entry as long. Any context.
    #[inline]
    pub fn new(device: D, run: &Run) -> Option<Self> {
        let len = u32::try_from(run.bytes()).ok()?;
        if !device.is_software() || len > device.max_segment_size() {
            return None;
        }
        // INVARIANT: Just checked.
        Some(Self {
            phys: run.phys(),
            len,
            device,
        })
    }
}

// SAFETY: By the type invariant the entry is as that of a mapped list; `Run` demands that the memory stays.
// There is no mapping but the entry itself, which is made anew each time.
unsafe impl<D: HasDevice> DmaList for SingleSg<D> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        let mut entry = MaybeUninit::uninit();
        // SAFETY: There is room for an entry, and by the invariant of `Run` its memory has pages.
        unsafe { rdma_bindings::rdma_helper_sg_single(entry.as_mut_ptr(), self.phys, self.len) };
        f(entry.as_mut_ptr())
    }

    fn count(&self) -> u32 {
        1
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}
