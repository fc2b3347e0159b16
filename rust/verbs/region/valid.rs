// SPDX-License-Identifier: GPL-2.0

//! The device regions by which peers reach a region: one, or several that are used and closed
//! together. [`Closed`] says why a region has none.

use super::spec::MrSpec;
use crate::{
    lists,
    prelude::*, //
};
use core::ops::Deref;
use rdma::{
    mr::deregister_all,
    RefreshError, //
};

/// Why a region has no device region.
#[derive(Clone, Copy)]
pub(crate) enum Closed {
    /// Not created, or closed.
    Idle,
    /// A step failed. No peer can reach the region any more.
    Failed,
    /// The device won't let go of a part of the region, whose memory must never be freed.
    Stuck,
    /// The device or the endpoint went away. `stuck` says that the device won't let go of the
    /// region.
    Ended { stuck: bool },
}

impl Closed {
    /// Returns the state of a region whose registration was refused with `refusal`.
    pub(super) fn after(refusal: &Refusal) -> Self {
        match refusal.errno() == Errno::ENOTRECOVERABLE {
            true => Self::Stuck,
            false => Self::Failed,
        }
    }

    /// Checks whether the region must still be closed.
    pub(super) fn is_open(self) -> bool {
        !matches!(self, Self::Idle | Self::Ended { .. })
    }

    /// Checks whether the device has let go of the memory.
    ///
    /// # Errors
    ///
    /// - `EIO`: the device has not let go of it.
    pub(super) fn released(self) -> Result<(), Refusal> {
        match self {
            Self::Stuck | Self::Ended { stuck: true } => Err(driver_errors::stuck()),
            _ => Ok(()),
        }
    }
}

/// Returns the refusal for a region that peers don't reach any more.
pub(super) fn lost() -> Refusal {
    Refusal::new(Errno::EIO, c"the region is out of reach for good")
}

/// Returns how peers reach device regions: by the key of the first.
#[inline]
pub(super) fn keys(valid: &[ValidMr]) -> Keys {
    Keys {
        key: valid.first().map_or(0, |mr| u64::from(mr.rkey())),
        base: valid.first().map_or(0, |mr| mr.iova()),
        // A work request's segment lies in one device region: there is no key for several.
        desc: match valid {
            [one] => num::index(one.lkey()),
            _ => 0,
        },
        whole: valid.len() <= 1,
    }
}

/// Returns how peers reach a device region. Any context.
pub(super) fn piece(mr: &FastMr) -> RemotePiece {
    RemotePiece {
        key: u64::from(mr.rkey()),
        base: mr.iova(),
        len: mr.length(),
    }
}

/// Returns how peers reach each of them. May sleep.
pub(super) fn pieces(valid: &[ValidMr]) -> Result<KVec<RemotePiece>, Refusal> {
    let mut pieces = KVec::with_capacity(valid.len(), GFP_KERNEL)?;
    for mr in valid {
        pieces.push(piece(mr), GFP_KERNEL)?;
    }
    Ok(pieces)
}

/// Replaces the memory of device regions by the pages that the request's addresses have now. Sleeps until the device is
/// done.
///
/// # Errors
///
/// The new state of the region, or `None` if the device regions are as before, and the refusal.
pub(super) fn refresh(
    valid: &mut SmallVec<ValidMr>,
    resources: &Resources,
    limits: &MrLimits,
    request: &MrRequest<'_>,
) -> Result<(), (Option<Closed>, Refusal)> {
    let as_it_was = |refusal| (None, refusal);
    let specs = MrSpec::all(resources, limits, request).map_err(as_it_was)?;
    let bytes = specs.iter().map(|spec| spec.piece.bytes);
    if !bytes.eq(valid.iter().map(|mr| mr.length())) {
        let why = c"the region had another shape";
        return Err(as_it_was(Refusal::new(Errno::EINVAL, why)));
    }
    let lists = lists::map(resources, request, &specs).map_err(as_it_was)?;
    let queue = resources.queue_pair().map_err(driver_errors::no_queue);
    let done = queue
        .map_err(as_it_was)?
        .refresh_all(valid, lists, resources.fence);
    done.map_err(|error| {
        let over = match error {
            RefreshError::Untouched(_) => None,
            RefreshError::Gone => Some(Closed::Failed),
            RefreshError::Leaked => Some(Closed::Stuck),
        };
        (over, driver_errors::not_refreshed(error))
    })
}

/// Takes device regions from the device, and keeps those that can be used again. If several regions
/// are released `together`, this makes no new device regions. Sleeps until no peer can reach the
/// memory.
///
/// # Errors
///
/// - `EIO`: the device won't let go of all of them.
#[inline(always)]
pub(super) fn release(
    valid: SmallVec<ValidMr>,
    resources: &Resources,
    together: bool,
) -> Result<(), Refusal> {
    if resources.fence.invalidates() {
        return revoke(resources, valid, |mr| resources.pool.put(mr));
    }
    let mut result = Ok(());
    valid.consume(|mr| {
        let (kind, pages) = (mr.kind(), mr.max_pages());
        result = mr.deregister().and(result);
        if !together && kind == Kind::Pages {
            resources.pool.make_up(pages);
        }
    });
    result.map_err(|_| driver_errors::stuck())
}

/// Invalidates device regions of any number, where that is the fence. Invalidated ones go to `reuse`, in
/// order. If no queue pair can invalidate them, this deregisters them, and the pool counts them. Sleeps until no peer
/// can reach the memory.
///
/// # Errors
///
/// - `EIO`: the device won't let go of all of them.
#[inline(always)]
pub(crate) fn revoke(
    resources: &Resources,
    valid: impl Deref<Target = [ValidMr]> + IntoIterator<Item = ValidMr>,
    mut reuse: impl FnMut(FastMr),
) -> Result<(), Refusal> {
    let mut left = valid.len();
    let reuse = |mr| {
        left = left.saturating_sub(1);
        reuse(mr);
    };
    let released = match resources.queue_pair() {
        Ok(queue) => queue
            .revoke_all(valid, resources.fence, reuse)
            .map_err(|_| driver_errors::stuck()),
        Err(_) => deregister(valid),
    };
    if left > 0 {
        resources.pool.not_invalidated(left);
    }
    released
}

/// Deregisters device regions, which takes no queue.
///
/// # Errors
///
/// - `EIO`: the device won't let go of all of them.
pub(super) fn deregister(valid: impl IntoIterator<Item = ValidMr>) -> Result<(), Refusal> {
    deregister_all(valid).map_err(|_| driver_errors::stuck())
}
