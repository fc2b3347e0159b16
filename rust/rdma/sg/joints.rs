// SPDX-License-Identifier: GPL-2.0

//! Where the entries of a mapped list meet.

use kernel::bindings;

/// What is to be known of where the entries of a mapped list meet.
pub struct Joints {
    /// The address of the first byte.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// All addresses at which one entry ends or another begins, or-ed.
    pub(super) bits: u64,
}

impl Joints {
    /// Those of a list of one entry, which has none.
    #[inline]
    pub(super) fn none(start: u64, bytes: u64) -> Self {
        Self {
            start,
            bytes,
            bits: 0,
        }
    }

    /// Those of a list; not all, nor are they all bytes, if none could be inside of pages larger than `base`. Any
    /// context.
    ///
    /// # Safety
    ///
    /// The list has so many mapped entries, not 0.
    pub(super) unsafe fn of(first: *mut bindings::scatterlist, count: u32, base: u32) -> Self {
        let mut joints = Self::none(0, 0);
        // SAFETY: By the requirements of this function.
        unsafe {
            rdma_bindings::rdma_helper_sg_joints(
                first,
                count,
                base,
                &mut joints.start,
                &mut joints.bytes,
                &mut joints.bits,
            )
        };
        joints
    }
}
