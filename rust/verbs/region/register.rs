// SPDX-License-Identifier: GPL-2.0

//! A registration, from the mapped lists to valid device regions: they are prepared, then registered as a batch.
//!
//! A request that fails takes down all requests on the same queue pair. So a device region whose request was flushed
//! is registered again, by itself.

use crate::{
    lists,
    refused,
    resources::Resources, //
};
use core::{
    ops::DerefMut,
    slice, //
};
use kernel::{
    alloc::AllocError,
    page::PAGE_SIZE, //
};
use kfabric::{
    num,
    prelude::*,
    ListVec,
    MrLimits,
    MrRequest,
    Piece,
    PushReserved, //
};
use rdma::{
    mr::{
        FastMr,
        Kind,
        RegisterError, //
    },
    sg::{
        DmaList,
        Layout,
        Memory, //
    },
    AccessFlags,
    PreparedMr,
    SmallVec,
    ValidMr,
    WrError, //
};

/// The address of the first page of any region for peers. It says nothing about the address in memory.
const BASE: u64 = 1 << 32;

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
        prepared.set_base(BASE).map_err(refused::not_mapped)?;
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
            refused::not_mapped(failed.error).at(num::index(failed.mapped))
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
        mr.map_err(refused::no_region)
    }
}

/// Returns the larger pages of the device for a list whose memory is contiguous enough, and the kind of device region
/// that has them.
///
/// A device region that is invalidated on close is used again, so it always has large pages. It can be refreshed, so
/// only memory that stays the same has large pages: other memory may be less contiguous. The peer may return a device
/// region of an endpoint. Drivers of hardware are seldom asked for larger pages.
fn larger<L: DmaList>(resources: &Resources, list: &L) -> Option<(Layout, Kind)> {
    let device = &resources.pd.device;
    if resources.lends || !device.is_software() {
        return None;
    }
    match resources.fence.invalidates() {
        false => Some((Layout::larger(device, list)?, Kind::Pages)),
        true if list.is_linear() => Some((Layout::large(device, list)?, Kind::LargePages)),
        true => None,
    }
}

/// How often a device region is registered when failures of others flush its request. The failures are those of
/// their devices or drivers. So a failure of each attempt means that something is wrong with all of them.
const ATTEMPTS: u32 = 8;

/// Registers device regions with these attributes. `done` gets the result of each, in order. Sleeps until the device
/// is done with all of them.
///
/// # Errors
///
/// No peer reaches the device region then. The errors of a result are:
///
/// - `ENOTRECOVERABLE`: the device won't let go of the memory.
/// - `ENODEV`: the device is gone.
/// - `ENETDOWN`, `ENOMEM`, `EIO`: the queue or the request failed.
#[inline(always)]
pub(crate) fn register<L: DmaList>(
    resources: &Resources,
    specs: &[MrSpec],
    prepared: impl DerefMut<Target = [PreparedMr<L>]> + IntoIterator<Item = PreparedMr<L>>,
    mut done: impl FnMut(Result<ValidMr, Refusal>),
) {
    let queue = match resources.queue_pair() {
        Ok(queue) => queue,
        Err(error) => {
            // The caller may close the regions next.
            drop(prepared);
            let refusal = refused::no_queue(error);
            return specs.iter().for_each(|_| done(Err(refusal)));
        }
    };
    if let Err(failed) = queue.register_all(prepared, |valid| done(Ok(valid))) {
        drop(queue);
        register_again(resources, specs, failed, &mut done);
    }
}

/// Registers the memory of a request that takes one device region. Sleeps until the device is done.
///
/// One segment that is contiguous needs no list but one on the stack, on a device that takes kernel addresses.
///
/// # Errors
///
/// The errors of the memory, of [`MrSpec::prepare`] and of [`register`].
#[inline]
pub(crate) fn register_request(
    resources: &Resources,
    spec: &MrSpec,
    request: &MrRequest<'_>,
) -> Result<ValidMr, Refusal> {
    match lists::of_run(resources, request)? {
        Some(list) => register_one(resources, spec, spec.prepare(resources, list)?),
        None => register_list(resources, spec, request),
    }
}

/// Registers memory in several segments, or not contiguous, as [`register_request`].
#[inline(never)]
fn register_list(
    resources: &Resources,
    spec: &MrSpec,
    request: &MrRequest<'_>,
) -> Result<ValidMr, Refusal> {
    if let Some(list) = lists::own(resources, request) {
        let prepared = spec.prepare(resources, list);
        // If the device does not take the list, an entry is no page.
        let prepared = prepared.inspect_err(|_| request.set_mistaken())?;
        return register_one(resources, spec, prepared);
    }
    let list = lists::map_no_run(resources, request, &spec.piece)?;
    register_one(resources, spec, spec.prepare(resources, list)?)
}

/// Registers one device region, as [`register`].
#[inline(always)]
fn register_one<L: DmaList>(
    resources: &Resources,
    spec: &MrSpec,
    prepared: PreparedMr<L>,
) -> Result<ValidMr, Refusal> {
    let mut done = Err(Errno::EIO.into());
    let specs = slice::from_ref(spec);
    register(resources, specs, SmallVec::one(prepared), |one| done = one);
    done
}

/// Registers device regions by themselves after the failure of their batch, unless the failure is their own.
#[cold]
fn register_again<L: DmaList>(
    resources: &Resources,
    specs: &[MrSpec],
    failed: RegisterError<L>,
    done: &mut impl FnMut(Result<ValidMr, Refusal>),
) {
    let lists = match failed.lists {
        Ok(lists) => lists,
        Err(error) => {
            let refusal = refused::not_undone(error);
            return specs.iter().for_each(|_| done(Err(refusal)));
        }
    };
    let is_own = match failed.error {
        // Once is enough to find out that the device does not answer.
        WrError::TimedOut => true,
        WrError::Flushed => false,
        _ => specs.len() == 1,
    };
    if is_own {
        let refusal = refused::not_registered(&resources.pd.device, failed.error);
        return specs.iter().for_each(|_| done(Err(refusal)));
    }
    for (spec, list) in specs.iter().zip(lists) {
        done(register_alone(resources, spec, list));
    }
}

/// Registers a device region, by another one for each attempt, as long as its request is flushed.
fn register_alone<L: DmaList>(
    resources: &Resources,
    spec: &MrSpec,
    mut list: L,
) -> Result<ValidMr, Refusal> {
    let mut error = WrError::Flushed;
    for _ in 1..ATTEMPTS {
        let prepared = spec.prepare(resources, list)?;
        let queue = resources.queue_pair().map_err(refused::no_queue)?;
        let mut valid = None;
        let Err(failed) = queue.register_all(SmallVec::one(prepared), |one| valid = Some(one))
        else {
            return valid.ok_or(Errno::EIO.into());
        };
        let mut lists = failed.lists.map_err(refused::not_undone)?;
        error = failed.error;
        list = match (error, lists.take_only()) {
            (WrError::Flushed, Some(list)) => list,
            _ => break,
        };
    }
    Err(refused::not_registered(&resources.pd.device, error))
}

/// Device regions of several regions, one of each.
pub(crate) struct Batch {
    specs: ListVec<MrSpec>,
    prepared: ListVec<PreparedMr<Memory>>,
}

impl Batch {
    /// Allocates an empty batch for up to `count` device regions. May sleep.
    pub(crate) fn with_capacity(count: usize) -> Result<Self, AllocError> {
        Ok(Self {
            specs: ListVec::with_capacity(count, GFP_KERNEL)?,
            prepared: ListVec::with_capacity(count, GFP_KERNEL)?,
        })
    }

    /// Adds a device region, for which there must be room.
    #[inline]
    pub(crate) fn push(&mut self, spec: MrSpec, prepared: PreparedMr<Memory>) {
        self.specs.push_reserved(spec);
        self.prepared.push_reserved(prepared);
    }

    /// Registers all of them, as [`register`].
    pub(crate) fn register(
        self,
        resources: &Resources,
        done: impl FnMut(Result<ValidMr, Refusal>),
    ) {
        if !self.specs.is_empty() {
            register(resources, &self.specs, self.prepared, done);
        }
    }
}
