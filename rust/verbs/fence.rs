// SPDX-License-Identifier: GPL-2.0

//! Which fence a device gets: the one place that decides it.
//!
//! MERGED sharing.rs
//! Who may come by the keys of a domain: peers of one queue pair, or of several.

use kernel::sync::{
    aref::ARef,
    atomic::{
        Atomic,
        Full, //
    },
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
    sharing: Arc<PdSharing>,
    replays: Replays,
}

impl ByPeer {
    /// Begins to look, before the queue pair of an endpoint is made, on this device and on the protection
    /// domain with this sharing. [`None`] on other devices than rxe. May sleep.
    pub(crate) fn watch(device: &ARef<Device>, sharing: &Arc<PdSharing>) -> Option<Self> {
        let (sharing, replays) = (sharing.clone(), Replays::watch(device)?);
        Some(Self { sharing, replays })
    }

    /// The fence of a region that was registered on the endpoint, by what has become of it. Any context.
    pub(crate) fn fence(&self, fate: &Fate) -> Fence {
        // In this order: what is looked at last has been so all the time.
        let ended = fate.is_known() && fate.is_invalidated_by_peer();
        if ended && self.replays.none_since() && self.sharing.is_exclusive() {
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

/// How many queue pairs with peers there have been on a protection domain: none, one, or more than one.
pub(crate) struct PdSharing(Atomic<u32>);

const NONE: u32 = 0;
const ONE: u32 = 1;
const SEVERAL: u32 = 2;

impl PdSharing {
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(NONE))
    }

    /// There is going to be a queue pair. To be called before. Any context.
    pub(crate) fn add_qp(&self) {
        if self.0.cmpxchg(NONE, ONE, Full).is_err() {
            self.set_shared();
        }
    }

    /// Others get the protection domain, and make there what they like. To be called before. Any context.
    pub(crate) fn set_shared(&self) {
        // In full order with what the device is told of those that come.
        self.0.xchg(SEVERAL, Full);
    }

    /// Whether there has been but one queue pair, so that the peer of no other can have used a key that was
    /// ended before this was called. Any context.
    pub(crate) fn is_exclusive(&self) -> bool {
        // In full order with what the device has said of the key.
        self.0.cmpxchg(ONE, ONE, Full).is_ok()
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_pd_sharing)]
mod tests {
    use super::*;

    #[test]
    fn one_qp_is_exclusive() {
        let sharing = PdSharing::new();
        assert!(!sharing.is_exclusive());
        sharing.add_qp();
        assert!(sharing.is_exclusive());
        sharing.add_qp();
        assert!(!sharing.is_exclusive());
        sharing.add_qp();
        assert!(!sharing.is_exclusive());
    }

    #[test]
    fn shared_stays_shared() {
        let sharing = PdSharing::new();
        sharing.set_shared();
        sharing.add_qp();
        assert!(!sharing.is_exclusive());
    }
}
