// SPDX-License-Identifier: GPL-2.0

//! Fast memory regions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_mr`
//!
//! A region is always in one of three states, each a type of its own:
//!
//! ```text
//!             map()              LocalQp::register_all()
//!   FastMr ----------> PreparedMr -----------------------> ValidMr
//!     ^                    |                                |   ^ LocalQp::refresh_all()
//!     +----- unmap() ------+                                +---+
//!     +--------------- LocalQp::revoke_all() ---------------+
//! ```
//!
//! Only a [`ValidMr`] is reachable for peers. It owns what keeps its memory mapped, and gives that
//! back only once the device is done with it. Where it isn't known what state the device has a
//! region in, because a work request failed, it is deregistered, which is a fence on any device.

mod fence;
mod prepared;
mod raw;
mod suspended;
mod valid;

pub use fence::Fence;
pub(crate) use prepared::abandon_all;
pub use prepared::{
    PreparedMr,
    RegisterError, //
};
pub(crate) use suspended::SuspendedMr;
pub use valid::ValidMr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use core::ptr::null_mut;

use self::raw::RawMr;
use crate::{
    access::AccessFlags,
    pd::Pd,
    sg::DmaList, //
};

/// What a region's memory may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole pages, except that it may start and end inside one.
    Pages,
    /// Anything. Needs [`Limits::sg_gaps`](crate::limits::Limits::sg_gaps).
    Gaps,
}

/// A fast memory region that is not valid at the device: no peer can reach anything through it.
///
/// Dropping it deregisters it, and may sleep.
///
/// # Invariants
///
/// No work request that would make the region valid has been posted, or the region has been
/// fenced since.
pub struct FastMr {
    raw: RawMr,
    kind: Kind,
    max_pages: u32,
    /// How often it has been registered, failed attempts included.
    uses: u32,
}

impl FastMr {
    /// How often a region can be registered before its keys would come back.
    ///
    /// Eight bits of the key change from one registration to the next; the rest is the region's
    /// for good.
    pub const MAX_USES: u32 = 255;

    /// Allocates a region for up to `max_pages` pages, or entries with [`Kind::Gaps`]. May sleep.
    pub fn alloc(pd: &Arc<Pd>, kind: Kind, max_pages: u32) -> Result<Self> {
        let entries = match kind {
            Kind::Pages => max_pages
                .checked_mul(pd.device().limits().per_page())
                .ok_or(EINVAL)?,
            Kind::Gaps => max_pages,
        };
        // INVARIANT: The region is new.
        Ok(Self {
            raw: RawMr::alloc(pd, kind, entries)?,
            kind,
            max_pages,
            uses: 0,
        })
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        self.raw.pd()
    }

    /// What its memory may look like.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many pages it can have.
    pub fn max_pages(&self) -> u32 {
        self.max_pages
    }

    /// Whether it has been registered so often that it must not be again.
    pub fn is_spent(&self) -> bool {
        self.uses >= Self::MAX_USES
    }

    /// Gives the region its memory and its rights.
    ///
    /// All of the list must fit, or nothing is done: [`EINVAL`] for a gap, too many pages, rights
    /// that don't go together or a list of another device, [`EOVERFLOW`] if the region is spent,
    /// or what the driver says. May sleep.
    pub fn map<L: DmaList>(
        self,
        list: L,
        access: AccessFlags,
    ) -> Result<PreparedMr<L>, MapError<L>> {
        if self.is_spent() {
            return Err(MapError {
                error: EOVERFLOW,
                mapped: 0,
                mr: self,
                list,
            });
        }
        self.map_again(list, access)
    }

    /// As [`FastMr::map`], but for the key that the region has.
    fn map_again<L: DmaList>(
        self,
        list: L,
        access: AccessFlags,
    ) -> Result<PreparedMr<L>, MapError<L>> {
        match self.map_list(&list, access) {
            Ok(()) => Ok(PreparedMr::new(self, list, access)),
            Err((error, mapped)) => Err(MapError {
                error,
                mapped,
                mr: self,
                list,
            }),
        }
    }

    /// Maps the list, or returns an error and how many entries could be mapped.
    fn map_list<L: DmaList>(&self, list: &L, access: AccessFlags) -> Result<(), (Error, u32)> {
        if !self.pd().device().is_same(list.device()) {
            return Err((EINVAL, 0));
        }
        access.check().map_err(|err| (err, 0))?;

        let count = c_int::try_from(list.count()).map_err(|err| (err.into(), 0))?;
        let page_size = self.pd().device().limits().page_size.ok_or((EINVAL, 0))?;
        // SAFETY: The region is there and not in use by the device, by the type invariant; the
        // list has that many mapped entries, as `DmaList` demands.
        let mapped = unsafe {
            rdma_bindings::ib_map_mr_sg(
                self.raw.as_raw(),
                list.as_raw(),
                count,
                null_mut(),
                page_size,
            )
        };
        match u32::try_from(mapped) {
            Ok(mapped) if mapped == list.count() => Ok(()),
            Ok(mapped) => Err((EINVAL, mapped)),
            Err(_) => Err((Error::from_errno(mapped), 0)),
        }
    }

    /// Gives the region the next key. To be done before each registration.
    fn next_key(&mut self) {
        self.uses = self.uses.saturating_add(1);
        // SAFETY: The region is there and not in use by the device.
        unsafe { rdma_bindings::rdma_helper_next_key(self.raw.as_raw()) };
    }
}

/// A region that could not be mapped, with all that went in.
pub struct MapError<L> {
    /// Why.
    pub error: Error,
    /// How many of the list's entries could be mapped, so the index of the one that couldn't.
    pub mapped: u32,
    /// The region.
    pub mr: FastMr,
    /// The list.
    pub list: L,
}
