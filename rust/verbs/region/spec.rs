// SPDX-License-Identifier: GPL-2.0

//! The first half of a registration: from the mapped list to a device region that is ready to be registered.

use crate::prelude::*;
use kernel::page::PAGE_SIZE;
use kfabric::Piece;
use rdma::sg::{
    DmaList,
    Layout, //
};

/// The address of the first page of any region for peers. It says nothing about the address in memory.
pub(crate) const BASE: u64 = 1 << 32;

const _: () = assert!(BASE % widen(PAGE_SIZE) == 0);

/// The attributes of one device region of a registration.
#[derive(Clone, Copy)]
pub(crate) struct MrSpec {
    pub(crate) piece: Piece,
    kind: Kind,
    access: AccessFlags,
    /// Whether it is registered with other regions.
    batched: bool,
    /// Whether the device region comes from the reserve.
    reserved: bool,
}

impl MrSpec {
    fn new(resources: &Resources, request: &MrRequest<'_>, piece: Piece, kind: Kind) -> Self {
        Self {
            piece,
            kind,
            access: resources.rights.flags(request.access()),
            batched: request.is_together(),
            reserved: request.is_reserved(),
        }
    }

    /// Returns the attributes of the device region of a request, or `None` if the request takes several. Any context.
    #[inline]
    pub(crate) fn only(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Option<Self> {
        let shape = request.shape();
        let piece = Piece {
            bytes: shape.bytes(),
            pages: shape.pages(),
        };
        let has_gaps = shape.gap().is_some();
        let fits = piece.pages <= limits.pages && piece.bytes <= limits.bytes && !has_gaps;
        let kind = match has_gaps {
            true => Kind::Gaps,
            false => Kind::Pages,
        };
        (fits || limits.pieces <= 1).then(|| Self::new(resources, request, piece, kind))
    }

    /// Returns the attributes of the device regions of a request. May sleep.
    ///
    /// # Errors
    ///
    /// - `E2BIG`: the request takes more device regions than a region can have.
    /// - `ENOMEM`
    pub(super) fn all(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<SmallVec<Self>, Refusal> {
        if let Some(spec) = Self::only(resources, limits, request) {
            return Ok(SmallVec::one(spec));
        }
        let cut = || request.pieces(limits.pages, limits.bytes);
        let count = cut().take(limits.pieces.saturating_add(1)).count();
        if count > limits.pieces {
            return Err(Refusal::new(Errno::E2BIG, c"too many pieces").value(widen(count)));
        }
        let mut specs = SmallVec::with_capacity(count, GFP_KERNEL)?;
        for piece in cut() {
            specs.push_reserved(Self::new(resources, request, piece, Kind::Pages));
        }
        Ok(specs)
    }

    /// Checks whether the pool keeps device regions of this kind. Any context.
    pub(super) fn is_pooled(&self) -> bool {
        self.kind == Kind::Pages && !self.reserved
    }

    /// Takes a device region for a list and maps the list to it. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`
    /// - `ENOSPC`: the device has no region left.
    /// - `EIO`: the device does not take the list.
    #[inline]
    pub(crate) fn prepare<L: DmaList>(
        &self,
        resources: &Resources,
        list: L,
    ) -> Result<PreparedMr<L>, Refusal> {
        let mut prepared = match self.prepare_larger(resources, list)? {
            Ok(prepared) => prepared,
            Err(list) => self.prepare_pages(resources, list)?,
        };
        if prepared.length() != self.piece.bytes {
            return Err(Refusal::new(Errno::EIO, c"the device took another length"));
        }
        prepared.set_base(BASE).map_err(driver_errors::not_mapped)?;
        Ok(prepared)
    }

    /// Maps a list by larger pages of the device. Returns the list if its memory or the device has none.
    #[inline]
    fn prepare_larger<L: DmaList>(
        &self,
        resources: &Resources,
        list: L,
    ) -> Result<Result<PreparedMr<L>, L>, Refusal> {
        // If each page has an entry, there are no larger ones. The reserve has device regions of pages only.
        let may = u64::from(list.count()) < self.piece.pages && self.is_pooled();
        let Some((layout, kind)) = may.then(|| larger(resources, &list)).flatten() else {
            return Ok(Err(list));
        };
        let mr = self.take(resources, kind, layout.pages());
        Ok(mr?.map_larger(list, self.access, layout))
    }

    /// Maps a list by pages of the device, or by entries.
    #[inline]
    fn prepare_pages<L: DmaList>(
        &self,
        resources: &Resources,
        list: L,
    ) -> Result<PreparedMr<L>, Refusal> {
        let pages = u32::try_from(self.piece.pages).unwrap_or(u32::MAX);
        let mr = self.take(resources, self.kind, pages)?;
        mr.map(list, self.access).map_err(|failed| {
            resources.pool.put(failed.mr);
            driver_errors::not_mapped(failed.error).at(num::index(failed.mapped))
        })
    }

    /// Takes a device region from its source.
    #[inline]
    fn take(&self, resources: &Resources, kind: Kind, pages: u32) -> Result<FastMr, Refusal> {
        let pool = &resources.pool;
        let mr = match kind {
            // The pool keeps none of these, which are rare.
            Kind::Gaps => FastMr::alloc(&resources.pd, kind, pages),
            _ if self.reserved => pool.take_reserved(),
            _ => pool.take(kind, pages, self.access, self.batched),
        };
        mr.map_err(driver_errors::no_region)
    }
}

/// Returns the larger pages of the device for a list whose memory is contiguous enough, and the kind of device region
/// that has them.
///
/// A device region that is invalidated on close is used again, so it always has large pages. It can be refreshed, so
/// only memory that stays the same has large pages: other memory may be less contiguous. The peer may return a device
/// region of an endpoint. Drivers of hardware are seldom asked for larger pages.
fn larger<L: DmaList>(resources: &Resources, list: &L) -> Option<(Layout, Kind)> {
    let device = resources.pd.device();
    if resources.lends || !device.is_software() {
        return None;
    }
    match resources.fence.invalidates() {
        false => Some((Layout::larger(device, list)?, Kind::Pages)),
        true if list.is_linear() => Some((Layout::large(device, list)?, Kind::LargePages)),
        true => None,
    }
}
