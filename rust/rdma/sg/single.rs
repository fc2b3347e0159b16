// SPDX-License-Identifier: GPL-2.0

//! Lists of one entry.

use core::mem::MaybeUninit;
use kernel::bindings;

use super::{
    joints::Joints,
    mapping::{
        DmaList,
        Mapping, //
    },
    run::Run, //
};
use crate::device::Device;

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
        let len = u32::try_from(run.bytes()).ok()?;
        if !device.is_software() || len > device.max_segment_size() {
            return None;
        }
        // INVARIANT: By that of `Run`, its memory has pages, and so has an address in the linear map where
        // devices take such.
        Some(Self {
            // SAFETY: May be called with any address.
            address: unsafe { rdma_bindings::rdma_helper_linear(run.phys()) },
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

    fn joints(&self, _base: u32) -> Joints {
        Joints::none(self.address, self.len.into())
    }

    fn is_linear(&self) -> bool {
        true
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}
