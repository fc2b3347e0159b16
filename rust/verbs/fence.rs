// SPDX-License-Identifier: GPL-2.0

//! Which fence a device gets: the one place that decides it.

use kfabric::{
    Errno,
    Refusal, //
};
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

/// Whether regions can get other memory behind their keys, on a device with this fence, which can
/// invalidate regions or not. Only where an invalidation is a fence: a deregistration would take the
/// key as well, and that peers are quiet is nothing to rely on when old pages are freed.
///
/// # Errors
///
/// - `ENOSYS` if the device can't invalidate.
/// - `EOPNOTSUPP` if that is no fence there.
pub(crate) fn allows_refresh(fence: Fence, invalidates: bool) -> Result<(), Refusal> {
    match (invalidates, fence.invalidates()) {
        (false, _) => Err(Refusal::new(
            Errno::ENOSYS,
            c"the device can't invalidate regions",
        )),
        (true, true) => Ok(()),
        (true, false) => Err(Refusal::new(
            Errno::EOPNOTSUPP,
            c"a software device has no fence that keeps the key, see kfi_verbs(7)",
        )),
    }
}
