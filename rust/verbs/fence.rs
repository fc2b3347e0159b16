// SPDX-License-Identifier: GPL-2.0

//! Which fence a device gets: the one place that decides it.

use rdma::{
    mr::Fence,
    Device, //
};

/// The fence for regions of this device.
///
/// With the module parameter `weak_fence` it is an invalidation on software devices too, for
/// benchmarks: the pool's way of hardware, but not safe there.
pub(crate) fn of(device: &Device) -> Fence {
    if crate::params::weak_fence() {
        // SAFETY: Not given on software devices. Whoever loads the module with this parameter has
        // been told so, in the parameter's description and in the log.
        unsafe { Fence::invalidate() }
    } else {
        Fence::of(device)
    }
}
