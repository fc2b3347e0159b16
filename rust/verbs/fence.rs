// SPDX-License-Identifier: GPL-2.0

//! Which fence a device gets: the one place that decides it.

use rdma::{
    mr::Fence,
    Device, //
};

/// The fence for regions of this device, which can invalidate them or not.
///
/// With the module parameter `weak_fence` it is an invalidation on software devices too, for
/// benchmarks: the pool's way of hardware, but not safe there.
pub(crate) fn of(device: &Device, invalidates: bool) -> Fence {
    if !invalidates {
        Fence::DEREGISTER
    } else if crate::params::weak_fence() {
        // SAFETY: Not given on software devices. Whoever loads the module with this parameter has
        // been told so, in the parameter's description and in the log.
        unsafe { Fence::invalidate() }
    } else {
        Fence::of(device)
    }
}

/// The fence for regions that get other memory behind their keys: an invalidation everywhere, for
/// the keys must stay.
pub(crate) fn of_quiet_peers() -> Fence {
    // SAFETY: `kfi_mr_refresh()` demands that no peer's access to the region is under way, so on
    // software devices too nothing is left that an invalidation would have to wait for.
    unsafe { Fence::invalidate() }
}
