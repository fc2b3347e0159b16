// SPDX-License-Identifier: GPL-2.0

//! How a region is taken from a device.

use crate::device::Device;

/// The way to make sure that a device doesn't touch a region's memory any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence(Way);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Deregister, which is a fence on any device.
    Deregister,
    /// Invalidate, where that is a fence.
    Invalidate,
    /// Invalidate anywhere: somebody has vouched for it.
    InvalidateAnyway,
    /// Deregister, unless a peer has invalidated: somebody has vouched for that.
    LeaveToPeer,
}

impl Fence {
    /// Returns the fence for a device: an invalidation on hardware, and [`Fence::DEREGISTER`] on
    /// devices with virtual DMA. There an invalidation only marks the region: `rxe_invalidate_mr()`
    /// and `rvt_invalidate_rkey()` (hfi1) don't wait for accesses that have looked it up. Both
    /// drivers hold references while they copy, and `ib_dereg_mr()` waits for the last one.
    /// `rvt_dereg_mr()` puts queue pairs into error that have one. It does not wait for writes by
    /// TID RDMA. hfi1 has that off unless `HFI1_CAP_TID_RDMA` is in the parameter `cap_mask` of
    /// that module.
    pub fn of(device: &Device) -> Self {
        if device.is_software() {
            Self::DEREGISTER
        } else {
            Self(Way::Invalidate)
        }
    }

    /// Deregisters the region. A fence on any device, but the region is gone.
    pub const DEREGISTER: Self = Self(Way::Deregister);

    /// Invalidates the region by a work request, after which it can be used again.
    ///
    /// # Safety
    ///
    /// To be used on devices only that complete an invalidation after everything that they have
    /// begun with the region. rxe and hfi1 don't: rxe goes on copying to or from a region that a peer's
    /// request has found before it was invalidated; memory that is freed then gets overwritten.
    pub const unsafe fn invalidate() -> Self {
        Self(Way::InvalidateAnyway)
    }

    /// Deregisters a region, unless a peer has invalidated it by the queue pair on which it was
    /// [lent](crate::endpoint_mr): then it can be used again, with the rights that it had.
    ///
    /// # Safety
    ///
    /// The fence of one region, when its registration has ended and the device has said that the peer
    /// has invalidated it. The device must not carry out the registration once more; and nothing that
    /// another queue pair's peer has begun with the region may be under way.
    pub const unsafe fn leave_to_peer() -> Self {
        Self(Way::LeaveToPeer)
    }

    /// Checks whether this is an invalidation.
    pub fn invalidates(self) -> bool {
        matches!(self.0, Way::Invalidate | Way::InvalidateAnyway)
    }

    /// Checks whether a region must keep its rights when it is used again after this.
    pub(crate) fn keeps_rights(self) -> bool {
        self.0 == Way::LeaveToPeer
    }

    /// Checks whether an invalidation by a peer is a fence on `device`, on the queue pair on which
    /// the region is lent.
    pub(crate) fn trusts_peer_on(self, device: &Device) -> bool {
        self.0 == Way::LeaveToPeer || self.invalidates_on(device)
    }

    /// Checks whether this is an invalidation, and a fence on `device`, which it may not have been
    /// made for.
    pub(crate) fn invalidates_on(self, device: &Device) -> bool {
        match self.0 {
            Way::Deregister | Way::LeaveToPeer => false,
            Way::Invalidate => !device.is_software(),
            Way::InvalidateAnyway => true,
        }
    }
}
