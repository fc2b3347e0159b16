// SPDX-License-Identifier: GPL-2.0

//! Workarounds for rxe, and the fences of software devices.
//!
//! Each workaround goes when rxe changes:
//!
//! | workaround | change in rxe that removes it |
//! |---|---|
//! | [`fence_of`] deregisters regions (`Fence::of`) | `rxe_invalidate_mr()` waits until no responder uses the region |
//! | [`ByPeer`] reuses a region after its peer has invalidated it | the same; then an invalidation by anybody is a fence |
//! | [`ByPeer`] watches [`Replays`] | the requester does not execute completed local requests again when it retries |
//! | [`fences_writes`] omits the fence of an atomic write | `rxe_wqe_is_fenced()` counts only reads that were posted before the request |
//! | [`is_truncation`] accepts two more statuses | the responder reports a message that exceeds the receive by `IB_WC_LOC_LEN_ERR` |
//! | [`is_refused_write`] | a refused write consumes no receive |
//! | `Queue::can_invalidate` repeats a flushed probe; `Conn::fail_by_region` takes a flush for a failure | the requester reports the status of the request that failed |
//! | `FastMr::map_larger` takes only new regions | `rxe_map_mr_sg()` keeps the table of a region that a responder may read |
//! | `RegQp::poll` gives its turn away | the requester executes local requests in `ib_post_send()`, not in a worker |

use crate::prelude::*;
use kernel::sync::atomic::Full;
use rdma::{
    endpoint_mr::RegState,
    replays::Replays,
    Device, //
};

/// Returns the fence for regions of a device. `invalidates` is true if it can invalidate them.
///
/// With the module parameter `weak_fence` it is an invalidation on software devices too, for
/// benchmarks: the pool's way of hardware, but not safe there.
pub(crate) fn fence_of(device: &Device, invalidates: bool) -> Fence {
    if !invalidates {
        Fence::DEREGISTER
    } else if crate::params::weak_fence() {
        // SAFETY: With `weak_fence` software devices get this fence, which is not one for them. The
        // parameter's description and the log warn the administrator.
        unsafe { Fence::invalidate() }
    } else {
        Fence::of(device)
    }
}

/// State for rxe, where only an invalidation by the endpoint's peer can be a fence.
///
/// rxe executes the requests of a queue pair's peer in one task, in order, and looks the region up
/// for each packet. If rxe reports that the peer has invalidated a region, no access of that peer
/// is in progress or can begin, provided that
///
/// - no peer of another queue pair can have the key: the endpoint has been the only one of its
///   domain, and nobody else has the protection domain;
/// - the region is not registered a second time: rxe does that when it [goes back](Replays) in its
///   send queue.
///
/// A packet may have matched the key just before the next registration of the region, and be
/// executed after that. So a region is reused only with the same rights and for the same peer,
/// which then accesses only memory that it may access.
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

    /// Returns the fence of a region that was registered on the endpoint. Any context.
    pub(crate) fn fence(&self, fate: &RegState) -> Fence {
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

/// Checks whether a write of eight bytes waits for the reads and atomic operations that were posted
/// before it. It takes its place among atomic operations.
///
/// rxe carries out each request in its turn. It stalls if it sends a fenced request again while it
/// waits for a read that was posted behind the request. Any context.
pub(crate) fn fences_writes(device: &Device) -> bool {
    !device.is_software()
}

/// Checks whether a receive was too short for its message. rxe reports another status for one packet
/// and for several packets. Any context.
pub(crate) fn is_truncation(status: WcStatus) -> bool {
    matches!(
        status,
        WcStatus::LOCAL_LENGTH | WcStatus::LOCAL_OPERATION | WcStatus::REMOTE_INVALID
    )
}

/// Checks whether a receive failed because rxe refused a write that carried data for it. Any context.
pub(crate) fn is_refused_write(status: WcStatus) -> bool {
    status == WcStatus::REMOTE_ACCESS
}

/// Checks whether regions can get other memory behind their keys. That needs an invalidation that
/// is a fence: a deregistration would end the key, too. The peers' cooperation does not suffice
/// when old pages are freed.
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

    /// Counts a queue pair that is about to be created. Any context.
    pub(crate) fn add_qp(&self) {
        if self.0.cmpxchg(NONE, ONE, Full).is_err() {
            self.set_shared();
        }
    }

    /// Notes that others get the protection domain and may create objects on it. Must be called
    /// before. Any context.
    pub(crate) fn set_shared(&self) {
        // In full order with what the device is told of those that come.
        self.0.xchg(SEVERAL, Full);
    }

    /// Checks whether there has been only one queue pair. In this case no other peer can have used
    /// a key that ended before this call. Any context.
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
