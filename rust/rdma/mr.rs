// SPDX-License-Identifier: GPL-2.0

//! Fast memory regions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_mr`
//!
//! A region is always in one of three states, each a type of its own:
//!
//! ```text
//!             map()              RegQp::register_all()
//!   FastMr ----------> PreparedMr -----------------------> ValidMr
//!     ^                    |                                |   ^ RegQp::refresh_all()
//!     +----- unmap() ------+                                +---+
//!     +---------------- RegQp::revoke_all() ----------------+
//! ```
//!
//! A region can also be registered without a [`RegQp`](crate::RegQp): by a request on a queue
//! pair of its consumer, to which it is [lent](crate::endpoint_mr) meanwhile.
//!
//! Peers can reach only a [`ValidMr`]. It owns the mapping of its memory, and gives that back only
//! once the device is done with it. If a work request fails, the state of the region at the device
//! is unknown. Then the region is deregistered, which is a fence on any device.

mod fast;

use crate::{
    prelude::*,
    sg::Mapping, //
};
use core::ops::Deref;

pub use self::fast::{
    FastMr,
    Kind,
    MapError,
    PreparedMr, //
};

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

/// Why regions could not be registered, with what is left of them.
///
/// They have all been deregistered.
pub struct RegisterError<L> {
    /// Why.
    pub error: WrError,
    /// Their lists in the same order, to be tried again with other regions, after the queue pair
    /// has been replaced if it is [broken](crate::RegQp::is_broken).
    ///
    /// [`ENOMEM`] if there was no memory for the answer; [`EIO`] if not even deregistering was
    /// possible, so that a list has been leaked: its memory must never be freed.
    pub lists: Result<SmallVec<L>>,
}

/// Deregisters all regions. Sleeps until no peer can reach their memory.
///
/// Returns an error if [`ValidMr::deregister`] does so for any of them.
pub fn deregister_all(mrs: impl IntoIterator<Item = ValidMr>) -> Result {
    let mut result = Ok(());
    for mr in mrs {
        result = mr.deregister().and(result);
    }
    result
}

/// The state of regions that could not be given other memory.
#[derive(Clone, Copy, Debug)]
pub enum RefreshError {
    /// They are as they were.
    Untouched(Error),
    /// They have been deregistered: no peer can reach any memory.
    Gone,
    /// The device would not let go of all of them: what it kept has been leaked with its mapping,
    /// and its memory, old or new, must never be freed.
    Leaked,
}

/// A region that is valid at the device. A peer that knows its key reaches its memory.
///
/// Close it by [`RegQp::revoke_all`](crate::RegQp::revoke_all) or [`ValidMr::deregister`], which
/// may sleep and can fail. Dropping it deregisters it as well, for error paths. Leaking it leaves
/// the memory reachable, so the mapping is leaked with it.
///
/// # Invariants
///
/// The region's memory is mapped by `mapping`. The device may use both until the region has been
/// fenced.
pub struct ValidMr {
    mr: ManuallyDrop<FastMr>,
    mapping: ManuallyDrop<Mapping>,
}

impl<L: DmaList> PreparedMr<L> {
    /// Makes the region valid.
    ///
    /// # Safety
    ///
    /// The device must have carried out its registration.
    pub(crate) unsafe fn into_valid(self) -> ValidMr {
        // INVARIANT: The mapping is of the list that the region was mapped with.
        ValidMr {
            mr: ManuallyDrop::new(self.mr),
            mapping: ManuallyDrop::new(self.list.into_mapping()),
        }
    }
}

impl Deref for ValidMr {
    type Target = FastMr;

    fn deref(&self) -> &FastMr {
        &self.mr
    }
}

impl ValidMr {
    /// Deregisters the region and undoes its mapping. After success, no peer can reach the memory,
    /// on any device. May sleep, on a software device as long as a peer's access is under way.
    ///
    /// Returns an error if the device would not let go of the region. Then region and mapping have
    /// been leaked, and the memory must never be freed.
    #[inline]
    pub fn deregister(self) -> Result {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        unsafe { this.end() }
    }

    /// Implements [`deregister`](Self::deregister).
    ///
    /// # Safety
    ///
    /// This must be the last use of `self`.
    unsafe fn end(&mut self) -> Result {
        // SAFETY: This is the last use of `self` by the function's contract, so each is taken once.
        let (mr, mapping) = unsafe { self.take_parts() };
        match mr.raw.deregister() {
            Ok(()) => {
                drop(mapping);
                Ok(())
            }
            Err(error) => {
                mapping.leak();
                Err(error)
            }
        }
    }

    /// Frees the region and its memory.
    ///
    /// # Safety
    ///
    /// The device must have invalidated the region, and that must be a fence on this device.
    pub(crate) unsafe fn into_free(self) -> FastMr {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        let (mr, mapping) = unsafe { this.take_parts() };
        drop(mapping);
        mr
    }

    /// Gives the region other memory. Its key, address, rights and page size stay the same. No peer
    /// can reach the region until it is registered again. May sleep.
    ///
    /// # Errors
    ///
    /// After an error, the region is deregistered.
    ///
    /// - [`EINVAL`]: the list is not as long as the old one, or starts elsewhere in its page.
    /// - The errors of [`FastMr::map`], except [`EOVERFLOW`].
    ///
    /// # Safety
    ///
    /// The device must have invalidated the region, and that must be a fence on this device.
    pub(crate) unsafe fn remap<L: DmaList>(self, list: L) -> Result<PreparedMr<L>> {
        let (iova, length) = (self.iova(), self.length());
        // SAFETY: The device has invalidated the region, and that is a fence on the device, by the
        // function's contract.
        let mr = unsafe { self.into_free() };
        let (access, page_size) = (mr.access(), mr.page_size());
        let base = iova & !mr.offset_mask();
        let prepared = mr.map_again(list, access, Some(page_size));
        let mut prepared = prepared.map_err(|failed| failed.error)?;
        prepared.set_base(base)?;
        if prepared.iova() != iova || prepared.length() != length {
            return Err(EINVAL);
        }
        Ok(prepared)
    }

    /// Takes region and mapping out, without fencing.
    ///
    /// # Safety
    ///
    /// This must be the last use of `self`.
    unsafe fn take_parts(&mut self) -> (FastMr, Mapping) {
        // SAFETY: This is the last use of `self` by the function's contract, so each is taken once.
        unsafe {
            (
                ManuallyDrop::take(&mut self.mr),
                ManuallyDrop::take(&mut self.mapping),
            )
        }
    }
}

impl Drop for ValidMr {
    fn drop(&mut self) {
        // SAFETY: `self` is being dropped, so this is its last use.
        let _ = unsafe { self.end() };
    }
}
