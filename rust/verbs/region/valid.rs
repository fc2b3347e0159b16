// SPDX-License-Identifier: GPL-2.0

//! What peers reach of a region: one region of the device, or several that are used and closed together.

use super::{
    over::Over,
    steps::put, //
};
use crate::{
    lists,
    refused,
    resources::Resources, //
};
use kernel::prelude::*;
use kfabric::{
    Errno,
    MrLimits,
    MrRequest,
    Refusal,
    RemotePiece, //
};
use rdma::{
    mr::Kind,
    Few,
    RefreshError,
    ValidMr, //
};

/// How peers reach them, one by one. May sleep.
pub(super) fn pieces(valid: &[ValidMr]) -> Result<KVec<RemotePiece>, Refusal> {
    let mut pieces = KVec::with_capacity(valid.len(), GFP_KERNEL)?;
    for mr in valid {
        let piece = RemotePiece {
            key: u64::from(mr.rkey()),
            base: mr.iova(),
            len: mr.length(),
        };
        pieces.push(piece, GFP_KERNEL)?;
    }
    Ok(pieces)
}

/// Puts what is behind the request's addresses now in the place of what was there before.
/// Sleeps until the device is done.
///
/// After an error they are as they were, or it is told what has become of them.
pub(super) fn refresh(
    valid: &mut Few<ValidMr>,
    resources: &Resources,
    limits: &MrLimits,
    request: &MrRequest<'_>,
) -> Result<(), (Option<Over>, Refusal)> {
    let as_it_was = |refusal| (None, refusal);
    let runs = lists::runs(limits, request).map_err(as_it_was)?;
    let bytes = runs.iter().map(|run| run.bytes);
    if !bytes.eq(valid.iter().map(ValidMr::length)) {
        let why = c"the region had another shape";
        return Err(as_it_was(Refusal::new(Errno::EINVAL, why)));
    }
    let lists = lists::map(resources, request, &runs, None).map_err(as_it_was)?;
    let queue = resources.queue_pair().map_err(refused::no_queue);
    let done = queue
        .map_err(as_it_was)?
        .refresh_all(valid, lists, resources.fence());
    done.map_err(|error| {
        let over = match error {
            RefreshError::Untouched(_) => None,
            RefreshError::Gone => Some(Over::Failed),
            RefreshError::Leaked => Some(Over::Stuck),
        };
        (over, refused::not_refreshed(error))
    })
}

/// Takes them from the device, and keeps what can be used again; what was `reserved` goes back there. Where that is
/// done with several regions `together`, the next ones are left to who comes for them. If no queue pair works that could
/// invalidate them, they are deregistered, and the pool counts them. Sleeps until no peer can reach the memory.
/// `EIO` if the device won't let go of it.
#[inline(always)]
pub(super) fn release(
    valid: Few<ValidMr>,
    resources: &Resources,
    reserved: bool,
    together: bool,
) -> Result<(), Refusal> {
    let fence = resources.fence();
    if fence.invalidates() {
        let mut left = valid.len();
        let put = |mr| {
            left = left.saturating_sub(1);
            put(resources.pool(), reserved, mr);
        };
        let released = match resources.queue_pair() {
            Ok(queue) => queue
                .revoke_all(valid, fence, put)
                .map_err(|_| refused::stuck()),
            Err(_) => deregister(valid),
        };
        if left > 0 {
            resources.pool().not_invalidated(left);
        }
        return released;
    }
    let mut result = Ok(());
    valid.consume(|mr| {
        let (kind, pages) = (mr.kind(), mr.max_pages());
        result = mr.deregister().and(result);
        if !together && kind == Kind::Pages && !reserved {
            resources.pool().make_up(pages);
        }
    });
    result.map_err(|_| refused::stuck())
}

/// As [`release`], by deregistering them, for which no queue is needed.
pub(super) fn deregister(valid: Few<ValidMr>) -> Result<(), Refusal> {
    let mut result = Ok(());
    valid.consume(|mr| result = mr.deregister().and(result));
    result.map_err(|_| refused::stuck())
}
