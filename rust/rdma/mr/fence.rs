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
}

impl Fence {
    /// The fence for a device: an invalidation on hardware, and [`Fence::DEREGISTER`] on software
    /// devices.
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
    /// begun with the region. rxe, for one, goes on copying to or from a region that a peer's
    /// request has found before it was invalidated; memory that is freed then gets overwritten.
    pub const unsafe fn invalidate() -> Self {
        Self(Way::InvalidateAnyway)
    }

    /// Whether this is an invalidation.
    pub fn invalidates(self) -> bool {
        self != Self::DEREGISTER
    }

    /// Whether this is an invalidation, and a fence on `device`, which it may not have been made
    /// for.
    pub(crate) fn invalidates_on(self, device: &Device) -> bool {
        match self.0 {
            Way::Deregister => false,
            Way::Invalidate => !device.is_software(),
            Way::InvalidateAnyway => true,
        }
    }
}
