// SPDX-License-Identifier: GPL-2.0

//! Lists of one entry.

use core::mem::MaybeUninit;
use kernel::{
    bindings,
    types::Opaque, //
};

use super::{
    mapping::{
        DmaList,
        Mapping, //
    },
    run::Run, //
};
use crate::device::Device;

/// A run of memory as a list of one entry, for a device that takes kernel addresses.
///
/// It takes no memory, and there is nothing to be undone.
///
/// # Invariants
///
/// `entry` is as it would be mapped for `device`, which takes kernel addresses.
pub struct SingleSg<'a> {
    entry: Opaque<bindings::scatterlist>,
    device: &'a Device,
}

impl<'a> SingleSg<'a> {
    /// Makes the list; [`None`] if the device takes other addresses, or no entry as long. Any context.
    #[inline]
    pub fn new(device: &'a Device, run: &Run) -> Option<Self> {
        let len = u32::try_from(run.bytes()).ok()?;
        if !device.is_software() || len > device.max_segment_size() {
            return None;
        }
        let mut entry = MaybeUninit::uninit();
        // SAFETY: There is room for an entry, and by the invariant of `Run` its memory has pages.
        let entry = unsafe {
            rdma_bindings::rdma_helper_sg_single(entry.as_mut_ptr(), run.phys(), len);
            entry.assume_init()
        };
        // INVARIANT: Just made so.
        Some(Self {
            entry: Opaque::new(entry),
            device,
        })
    }
}

// SAFETY: By the type invariant the entry is that of a mapped list, which is borrowed; `Run` demands that the
// memory stays. There is no mapping but the entry itself.
unsafe impl DmaList for &SingleSg<'_> {
    fn device(&self) -> &Device {
        self.device
    }

    fn as_raw(&self) -> *mut bindings::scatterlist {
        self.entry.get()
    }

    fn count(&self) -> u32 {
        1
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}
