// SPDX-License-Identifier: GPL-2.0

//! The operations of a queue pair on regions, many in one go.

use kernel::{
    error::to_result,
    prelude::*, //
};

use core::ops::{
    Deref,
    DerefMut, //
};

use rdma_bindings as b;

use super::LocalQp;
use crate::{
    mr::{
        abandon_all,
        FastMr,
        Fence,
        PreparedMr,
        RefreshError,
        RegisterError,
        ValidMr, //
    },
    sg::DmaList,
    small_vec::SmallVec,
    wc::WrError, //
    wr_batch::RegionWr,
};

impl LocalQp {
    /// Registers regions of any number, with their next keys. Each goes to `valid`, in order, when the device has
    /// registered all of them.
    ///
    /// Sleeps, uninterruptibly, until the device is done with all of them.
    ///
    /// # Errors
    ///
    /// No region is valid then.
    ///
    /// - [`EINVAL`]: a region is of another protection domain.
    /// - [`WrError::Flushed`]: of several regions, the device refused one, or another task's request failed.
    /// - The failure of the request, if there is one region.
    #[inline(always)]
    pub fn register_all<L: DmaList>(
        &self,
        mut mrs: impl DerefMut<Target = [PreparedMr<L>]> + IntoIterator<Item = PreparedMr<L>>,
        mut valid: impl FnMut(ValidMr),
    ) -> Result<(), RegisterError<L>> {
        mrs.iter_mut().for_each(PreparedMr::next_key);
        if let Err(error) = self.make_valid(&mrs) {
            let count = mrs.len();
            return Err(undo(mrs, count, error));
        }
        for mr in mrs {
            // SAFETY: The device has just registered all of them.
            valid(unsafe { mr.into_valid() });
        }
        Ok(())
    }

    /// Registers regions by the keys that they have. After an error nothing is known of any of them.
    fn make_valid<L: DmaList>(&self, mrs: &[PreparedMr<L>]) -> Result<(), WrError> {
        if !mrs.iter().all(|mr| self.is_same_pd(mr.pd())) {
            return Err(WrError::Post(EINVAL));
        }
        match mrs {
            [one] => {
                let (mr, access) = (one.as_raw(), one.access().into());
                // SAFETY: `qp` and `cqe` are valid until the request has completed. The region is borrowed for
                // longer than the call. If the request is lost, `undo()` leaks the region.
                unsafe {
                    self.run_one(|qp, cqe| to_result(b::rdma_helper_post_reg(qp, mr, access, cqe)))
                }
            }
            _ => self.run_together(mrs.iter().map(RegionWr::register)),
        }
    }

    /// Takes regions from the device: when this has succeeded, no peer can reach their memory.
    ///
    /// Sleeps, uninterruptibly, until that is so. Regions that could be invalidated go to `reuse`.
    /// The others are deregistered. So are all regions if the fence or the queue pair is not for
    /// their device. An error means that the device would not release all of them. Those have been
    /// leaked with their mapping, and their memory must never be freed.
    #[inline(always)]
    pub fn revoke_all(
        &self,
        mrs: impl Deref<Target = [ValidMr]> + IntoIterator<Item = ValidMr>,
        fence: Fence,
        mut reuse: impl FnMut(FastMr),
    ) -> Result {
        if self.invalidate(&mrs, fence).is_err() {
            return deregister_all(mrs);
        }
        for mr in mrs {
            // SAFETY: The device has just invalidated it, which is a fence here, as `Fence` says.
            reuse(unsafe { mr.into_free() });
        }
        Ok(())
    }

    /// Gives valid regions other memory, behind the same keys, at the same addresses and with the
    /// same rights: `lists` is to have as many, of the same lengths and offsets in their pages.
    ///
    /// On success no peer can reach the old memory any more. In between, and from most errors on, no
    /// peer can reach any, as [`RefreshError`] says; `mrs` is empty then. The fence must be an
    /// invalidation.
    ///
    /// Sleeps, uninterruptibly, until the device is done.
    pub fn refresh_all<L: DmaList>(
        &self,
        mrs: &mut SmallVec<ValidMr>,
        lists: SmallVec<L>,
        fence: Fence,
    ) -> Result<(), RefreshError> {
        if mrs.len() != lists.len() || !self.can_invalidate(mrs, fence) {
            return Err(RefreshError::Untouched(EINVAL));
        }
        let mut prepared = SmallVec::with_capacity(mrs.len(), GFP_KERNEL)
            .map_err(|e| RefreshError::Untouched(e.into()))?;
        let room = SmallVec::with_capacity(mrs.len(), GFP_KERNEL)
            .map_err(|e| RefreshError::Untouched(e.into()))?;

        let old = core::mem::take(mrs);
        if self.invalidate(&old, fence).is_err() {
            return Err(match deregister_all(old) {
                Ok(()) => RefreshError::Gone,
                Err(_) => RefreshError::Leaked,
            });
        }
        for (mr, list) in old.into_iter().zip(lists) {
            // SAFETY: The device has just invalidated it, which is a fence here, as `Fence` says.
            let mr = unsafe { mr.into_suspended() };
            // On an error all are dropped, and so deregistered; the device has none of them now.
            let mr = mr.map(list).map_err(|_| RefreshError::Gone)?;
            prepared.push_reserved(mr);
        }
        if let Err(error) = self.make_valid(&prepared) {
            let count = prepared.len();
            return Err(match undo(prepared, count, error).lists {
                Err(e) if e == EIO => RefreshError::Leaked,
                _ => RefreshError::Gone,
            });
        }
        // SAFETY: The device has just registered all of them.
        *mrs = prepared.map_into(room, |mr| unsafe { mr.into_valid() });
        Ok(())
    }

    /// Checks whether invalidating on this queue pair is a fence for regions.
    fn can_invalidate(&self, mrs: &[ValidMr], fence: Fence) -> bool {
        fence.invalidates_on(self.pd().device()) && mrs.iter().all(|mr| self.is_same_pd(mr.pd()))
    }

    /// Invalidates the region with this key, and waits. Sleeps, uninterruptibly.
    pub(super) fn invalidate_key(&self, key: u32) -> Result<(), WrError> {
        // SAFETY: `qp` and `cqe` are valid until the request has completed. The request refers to no
        // memory: it names a key.
        unsafe { self.run_one(|qp, cqe| to_result(b::rdma_helper_post_inv(qp, key, cqe))) }
    }

    /// Invalidates regions, if that is a fence. After an error nothing is known of any of them.
    fn invalidate(&self, mrs: &[ValidMr], fence: Fence) -> Result<(), WrError> {
        if !self.can_invalidate(mrs, fence) {
            return Err(WrError::Post(EINVAL));
        }
        match mrs {
            [one] => self.invalidate_key(one.rkey()),
            _ => self.run_together(mrs.iter().map(RegionWr::invalidate)),
        }
    }
}

/// Takes `count` regions back that the device may have registered or not.
#[cold]
fn undo<L: DmaList>(
    mrs: impl IntoIterator<Item = PreparedMr<L>>,
    count: usize,
    error: WrError,
) -> RegisterError<L> {
    let lists = match error {
        WrError::Lost => {
            // The device may look at the regions yet, so they must stay.
            mrs.into_iter().for_each(PreparedMr::leak);
            Err(EIO)
        }
        _ => abandon_all(mrs, count),
    };
    RegisterError { error, lists }
}

/// Deregisters regions, all of them, and gives an error if any failed.
fn deregister_all(mrs: impl IntoIterator<Item = ValidMr>) -> Result {
    let mut result = Ok(());
    for mr in mrs {
        result = mr.deregister().and(result);
    }
    result
}
