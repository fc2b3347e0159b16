// SPDX-License-Identifier: GPL-2.0

//! Regions without memory.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::raw::{
    Kind,
    RawMr, //
};
use crate::{
    access::AccessFlags,
    pd::Pd,
    sg::Layout, //
};

/// A fast memory region that is not valid at the device: no peer can reach anything through it.
///
/// Dropping it deregisters it, and may sleep.
///
/// # Invariants
///
/// No work request that would make the region valid has been posted, or the region has been
/// fenced since.
pub struct FastMr {
    pub(super) raw: RawMr,
    max_pages: u32,
    /// How often it has been registered, failed attempts included.
    uses: u8,
    /// The rights that it has, or had last; none yet if it was never mapped.
    access: AccessFlags,
    /// It must have the same rights again.
    keeps_rights: bool,
    kind: Kind,
}

// There is at least one to each open region.
const _: () = assert!(size_of::<FastMr>() <= 24);

impl FastMr {
    /// How often a region can be registered before its keys would come back.
    ///
    /// Eight bits of the key change from one registration to the next; the rest is the region's
    /// for good.
    pub const MAX_USES: u8 = 255;

    /// Allocates a region for up to `max_pages` pages, of its kind, or entries with [`Kind::Gaps`]. May sleep.
    pub fn alloc(pd: &Arc<Pd>, kind: Kind, max_pages: u32) -> Result<Self> {
        let entries = match kind {
            Kind::Pages => max_pages
                .checked_mul(pd.device().per_page())
                .ok_or(EINVAL)?,
            Kind::LargePages | Kind::Gaps => max_pages,
        };
        // INVARIANT: The region is new.
        Ok(Self {
            raw: RawMr::alloc(pd, kind, entries)?,
            max_pages,
            uses: 0,
            access: AccessFlags::default(),
            keeps_rights: false,
            kind,
        })
    }

    /// Returns the protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        self.raw.pd()
    }

    /// Returns the kind of memory that the region may have.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the maximum number of pages.
    pub fn max_pages(&self) -> u32 {
        self.max_pages
    }

    /// Checks whether the region may be registered with these rights. An unused region may have
    /// any.
    pub fn may_have(&self, access: AccessFlags) -> bool {
        !self.keeps_rights || self.access == access
    }

    /// Checks whether the region may only have its former rights.
    pub fn keeps_rights(&self) -> bool {
        self.keeps_rights
    }

    /// Checks whether the region may get pages of this size, on a device whose own have `base`. It
    /// may get larger ones only if it was never registered, or always has larger ones. rxe makes a
    /// table for the larger pages and frees the former one. A peer that knows the region's former
    /// key may be reading that.
    pub(super) fn may_have_pages(&self, size: u32, base: u32) -> bool {
        match self.kind {
            Kind::Pages => size == base || self.uses == 0,
            Kind::LargePages => size == Layout::LARGE,
            Kind::Gaps => size == base,
        }
    }

    /// Returns the rights that the region has, or had last.
    pub(super) fn access(&self) -> AccessFlags {
        self.access
    }

    /// Gives it rights that it [may have](Self::may_have).
    pub(super) fn set_access(&mut self, access: AccessFlags) {
        self.access = access;
    }

    /// Checks whether the region has been registered so often that it must not be again.
    pub fn is_spent(&self) -> bool {
        self.uses == Self::MAX_USES
    }

    /// Checks whether half of its keys have been used, so that a new region should take its place soon. Any
    /// context.
    pub fn is_worn(&self) -> bool {
        self.uses >= Self::MAX_USES / 2
    }

    /// Restricts the region to the rights that it had last.
    pub(crate) fn keep_rights(&mut self) {
        self.keeps_rights = true;
    }

    /// Gives the region the next key. To be done before each registration.
    #[inline]
    pub(super) fn next_key(&mut self) {
        self.uses = self.uses.saturating_add(1);
        // SAFETY: The region is there and not in use by the device.
        unsafe { rdma_bindings::rdma_helper_next_key(self.raw.as_raw()) };
    }
}
