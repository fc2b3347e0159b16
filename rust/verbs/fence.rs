// SPDX-License-Identifier: GPL-2.0

//! Which fence a device gets: the one place that decides it.

use crate::company::Company;
use kernel::sync::{
    aref::ARef,
    Arc, //
};
use kfabric::{
    Errno,
    Refusal, //
};
use rdma::{
    lent::Fate,
    mr::Fence,
    replays::Replays,
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

/// What makes an invalidation by the peer of an endpoint a fence over rxe, which invalidations are not.
///
/// rxe carries out the requests of a queue pair's peer in one task, one after the other, and finds the region
/// anew for each packet. So when it has said that the peer has invalidated a region, nothing is under way
/// there, and nothing begins any more, of that peer's; provided that
///
/// - no other queue pair's peer can have come by the key: the endpoint has been the only one of its
///   domain, whose protection domain nobody else has;
/// - the region isn't registered a second time: rxe does that when it [goes back](Replays) in its send
///   queue.
///
/// And a packet may have been matched with the key just before the region is registered by its next one, and
/// the rest of it be looked at after that. So a region is used again with the same rights only, and then by the
/// same peer as before: what it gets at is what it has just been given.
pub(crate) struct ByPeer {
    company: Arc<Company>,
    replays: Replays,
}

impl ByPeer {
    /// Begins to look, before the queue pair of an endpoint is made, on this device and on the protection
    /// domain with this company. [`None`] on other devices than rxe. May sleep.
    pub(crate) fn watch(device: &ARef<Device>, company: &Arc<Company>) -> Option<Self> {
        let (company, replays) = (company.clone(), Replays::watch(device)?);
        Some(Self { company, replays })
    }

    /// The fence of a region that was registered on the endpoint, by what has become of it. Any context.
    pub(crate) fn fence(&self, fate: &Fate) -> Fence {
        // In this order: what is looked at last has been so all the time.
        let ended = fate.is_known() && fate.is_invalidated_by_peer();
        if ended && self.replays.none_since() && self.company.is_two() {
            // SAFETY: Nothing was carried out twice, and there is no other queue pair with a peer.
            unsafe { Fence::leave_to_peer() }
        } else {
            Fence::DEREGISTER
        }
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
