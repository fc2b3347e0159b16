// SPDX-License-Identifier: GPL-2.0

//! What a region has that is made [in steps](super::in_steps). What is registered [at once](super::at_once) has
//! none of it.

use crate::{
    lists,
    pool::Pool,
    refused,
    resources::Resources, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    num,
    Errno,
    MrLimits,
    MrRequest,
    Piece,
    Refusal, //
};
use rdma::{
    mr::{
        FastMr,
        Kind, //
    },
    sg::{
        DmaList,
        Layout,
        Memory,
        SpareTable, //
    },
    AccessFlags,
    Few,
    PreparedMr, //
};

/// Where peers find the first page of any region: not where it is in memory.
pub(super) const BASE: u64 = 1 << 32;

/// What there is to be known of a region that is made in steps.
///
/// Each list has an entry for each run.
pub(super) struct Steps {
    /// What each of its device regions holds.
    runs: Few<Piece>,
    /// The entries of its list, if it is one of those that were reserved.
    spare: Option<SpareTable>,
    kind: Kind,
    access: AccessFlags,
    /// It is registered with others.
    together: bool,
}

impl Steps {
    /// Nothing yet. With a spare list that is one of those that were reserved, of which no memory is taken then,
    /// if the region is one to the device and the list is long enough, and isn't to be registered on an endpoint.
    pub(super) fn new(spare: Option<SpareTable>) -> Self {
        Self {
            runs: Few::new(),
            spare,
            kind: Kind::Pages,
            access: AccessFlags::default(),
            together: false,
        }
    }

    /// Those of a region that is one to the device, and could not be registered at once.
    pub(super) fn of(piece: Piece, access: AccessFlags, together: bool) -> Self {
        Self {
            runs: Few::one(piece),
            access,
            together,
            ..Self::new(None)
        }
    }

    /// It is one of those that were reserved.
    pub(super) fn is_reserved(&self) -> bool {
        self.spare.is_some()
    }

    /// Its device regions are such as are kept for others.
    pub(super) fn is_of_pages(&self) -> bool {
        self.kind == Kind::Pages
    }

    /// Checks memory, maps it and takes device regions for it. May sleep.
    pub(super) fn take(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<Few<PreparedMr<Memory>>, Refusal> {
        self.runs = lists::runs(limits, request)?;
        self.kind = match request.shape().gap() {
            Some(_) if limits.pieces <= 1 => Kind::Gaps,
            _ => Kind::Pages,
        };
        self.access = resources.rights().flags(request.access());
        self.together = request.is_together();
        let lists = lists::map(resources, request, &self.runs, self.spare.as_ref())?;
        self.prepare(resources, lists)
    }

    /// Gives a device region to each list; also to those whose device regions are gone.
    pub(super) fn prepare(
        &self,
        resources: &Resources,
        lists: Few<Memory>,
    ) -> Result<Few<PreparedMr<Memory>>, Refusal> {
        lists.try_map(GFP_KERNEL, |index, list| {
            let run = self.runs.get(index).ok_or(Errno::EIO)?;
            let layout = match (self.kind, self.is_reserved()) {
                (Kind::Pages, false) => larger(resources, &list),
                _ => None,
            };
            let mapped = match layout {
                Some((layout, kind)) => self.map_larger(resources, list, layout, kind)?,
                None => Err(list),
            };
            let mut prepared = match mapped {
                Ok(prepared) => prepared,
                Err(list) => self.map(resources, run, list)?,
            };
            if prepared.length() != run.bytes {
                return Err(Refusal::new(Errno::EIO, c"the device took another length"));
            }
            prepared.set_base(BASE).map_err(refused::not_mapped)?;
            Ok(prepared)
        })
    }

    /// Gives a device region of such pages to a list; gives the list back if the device won't have
    /// it so.
    fn map_larger(
        &self,
        resources: &Resources,
        list: Memory,
        layout: Layout,
        kind: Kind,
    ) -> Result<Result<PreparedMr<Memory>, Memory>, Refusal> {
        let (pool, pages) = (resources.pool(), layout.pages());
        let mr = pool.take(kind, pages, self.access, self.together);
        Ok(mr
            .map_err(refused::no_region)?
            .map_larger(list, self.access, layout))
    }

    /// Gives a device region to a list.
    fn map(
        &self,
        resources: &Resources,
        run: &Piece,
        list: Memory,
    ) -> Result<PreparedMr<Memory>, Refusal> {
        let pages = u32::try_from(run.pages).unwrap_or(u32::MAX);
        let mr = match self.kind {
            Kind::Pages if self.is_reserved() => resources.pool().take_reserved(),
            Kind::Pages => {
                let pool = resources.pool();
                pool.take(Kind::Pages, pages, self.access, self.together)
            }
            // Regions with gaps are too rare to be kept, and those of large pages are mapped as such.
            Kind::Gaps | Kind::LargePages => FastMr::alloc(resources.pd(), self.kind, pages),
        }
        .map_err(refused::no_region)?;
        mr.map(list, self.access).map_err(|failed| {
            put(resources.pool(), self.is_reserved(), failed.mr);
            refused::not_mapped(failed.error).at(num::index(failed.mapped))
        })
    }

    /// Gives back what isn't to be registered: its device regions are kept for others. May sleep.
    pub(super) fn undo(&self, resources: &Resources, prepared: Few<PreparedMr<Memory>>) {
        let reserved = self.is_reserved();
        prepared.consume(|prepared| {
            let (mr, list) = prepared.unmap();
            drop(list);
            put(resources.pool(), reserved, mr);
        });
    }
}

/// The larger pages of the device that will do for a list whose memory is so contiguous, and the kind of region that
/// has them; not for one with gaps, nor of what was reserved, which must not take any memory now.
///
/// One that is invalidated when it is closed is used again, so it has large pages always. And it can be refreshed
/// before, so only memory that stays the same then has such pages: other memory needn't be as contiguous. One that is
/// lent may come back. Drivers of hardware have hardly ever been asked for larger pages.
pub(super) fn larger<L: DmaList>(resources: &Resources, list: &L) -> Option<(Layout, Kind)> {
    let device = resources.device();
    if resources.lends() || !device.is_software() {
        return None;
    }
    match resources.fence().invalidates() {
        false => Some((Layout::larger(device, list)?, Kind::Pages)),
        true if list.is_linear() => Some((Layout::large(device, list)?, Kind::LargePages)),
        true => None,
    }
}

/// Keeps a device region for others.
#[inline(always)]
pub(super) fn put(pool: &Arc<Pool>, reserved: bool, mr: FastMr) {
    if reserved {
        pool.put_reserved(mr);
    } else {
        pool.put(mr);
    }
}
