// SPDX-License-Identifier: GPL-2.0

//! Registrations that don't fail for want of memory.
//!
//! C header: [`include/kfi_reserve_ext.h`](srctree/include/kfi_reserve_ext.h)

use super::{
    call,
    Domain, //
};
use crate::{
    object::ext::reserve::NAME,
    support::errno::Errno, //
};
use kfi_bindings::kfi_reserve_ops;

impl Domain {
    /// Reserves what `count` regions of up to `pages` pages each need, in as many segments at most.
    /// May sleep.
    ///
    /// From then on the provider makes such regions of what was reserved (in a domain with
    /// [`MrMode::ENDPOINT`](super::MrMode::ENDPOINT) for who frees memory or finds none), as long as fewer than
    /// `count` of these are open. What this crate adds is not reserved: the objects around a region
    /// are allocated, before anything is registered.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the domain has a reserve.
    /// - `ENOSYS`: the provider can't.
    /// - Those that kfi_domain(3) names.
    pub fn reserve(&self, count: usize, pages: usize) -> Result<(), Errno> {
        let ops = self.extension(NAME)?.cast::<kfi_reserve_ops>();
        // SAFETY: A table of this name is what the header says, and there as long as the domain.
        let reserve = unsafe { ops.as_ref() }.reserve.ok_or(Errno::ENOSYS)?;
        // SAFETY: The domain of `fid` is open as long as `self` is there.
        call::result(unsafe { reserve(self.fid(), count, pages) })
    }
}
