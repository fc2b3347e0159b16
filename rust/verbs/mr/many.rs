// SPDX-License-Identifier: GPL-2.0

//! Several regions in one go: their work requests are waited for together.
//!
//! Regions of several pieces are enabled and closed by themselves.

use super::{
    Mr,
    State, //
};
use crate::{
    link::Link,
    refused,
    region::{
        self,
        Region, //
    },
    resources::Resources, //
};
use core::mem;
use kernel::prelude::*;
use kfabric::{
    provider::{
        Bindings,
        Closing,
        Enabling,
        Keys, //
    },
    Errno,
    Refusal, //
};
use rdma::Few;

/// One of them, and where it is told how it ended.
type Enabled<'a> = (
    &'a mut Region,
    &'a Bindings,
    &'a mut Option<Result<Keys, Refusal>>,
);

/// Enables several. Sleeps until the device is done with all. Without memory for lists of them each is
/// enabled by itself: those that were reserved don't fail for that.
pub(crate) fn enable_many(link: &Link, mrs: &mut [Enabling<'_>]) {
    let Some(inside) = link.gate().enter() else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(Err(refused::gone())));
        return;
    };
    let resources = inside.get();
    let lists = (
        KVVec::with_capacity(mrs.len(), GFP_KERNEL),
        Few::with_capacity(mrs.len(), GFP_KERNEL),
        Few::with_capacity(mrs.len(), GFP_KERNEL),
    );
    let (Ok(mut regions), Ok(mut prepared), Ok(room)) = lists else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(one.mr.enable(one.bindings)));
        return;
    };
    for one in mrs {
        match one.mr.as_any().downcast_mut().map(Mr::region) {
            Some(Ok(region)) => match region.take_prepared() {
                // There is room.
                Some(own) => {
                    let _ = prepared.push_within_capacity(own);
                    let _ = regions.push_within_capacity((region, one.bindings, &mut *one.done));
                }
                None => *one.done = Some(region.enable(resources, one.bindings)),
            },
            Some(Err(refusal)) => *one.done = Some(Err(refusal)),
            None => *one.done = Some(Err(Errno::EINVAL.into())),
        }
    }
    if regions.is_empty() {
        return;
    }
    let queue = match resources.queue_pair() {
        Ok(queue) => queue,
        Err(error) => {
            // The regions are deregistered as what was prepared is dropped.
            let refusal = refused::no_queue(error);
            return regions
                .into_iter()
                .for_each(|(_, _, done)| *done = Some(Err(refusal)));
        }
    };
    match queue.register_into(prepared, room) {
        Ok(valid) => {
            for ((region, _, done), valid) in regions.into_iter().zip(valid) {
                *done = Some(Ok(region.set_valid(valid)));
            }
        }
        Err(failed) => one_by_one(resources, regions, failed.lists),
    }
}

/// One has failed, or somebody else's request: each by itself fails, or doesn't, for its own reasons.
fn one_by_one(
    resources: &Resources,
    regions: KVVec<Enabled<'_>>,
    lists: Result<Few<rdma::sg::Memory>>,
) {
    match lists {
        Ok(lists) => {
            for ((region, bindings, done), list) in regions.into_iter().zip(lists) {
                let again = region.prepare_again(resources, list);
                *done = Some(again.and_then(|()| region.enable(resources, bindings)));
            }
        }
        Err(error) => {
            for (region, _, done) in regions {
                region.not_undone(error);
                *done = Some(Err(refused::not_undone(error)));
            }
        }
    }
}

/// Closes several. Sleeps until no peer can reach any.
pub(crate) fn close_many(link: &Link, mrs: &mut [Closing<'_>]) {
    if !closed_together(link, mrs) {
        for one in mrs {
            *one.done = Some(one.mr.close());
        }
    }
}

/// Invalidates several together, where that is the fence; or does nothing.
fn closed_together(link: &Link, mrs: &mut [Closing<'_>]) -> bool {
    let Some(inside) = link.gate().enter() else {
        return false;
    };
    let resources = inside.get();
    let fence = resources.fence();
    if !fence.invalidates() {
        return false;
    }
    let lists = (
        KVVec::with_capacity(mrs.len(), GFP_KERNEL),
        Few::with_capacity(mrs.len(), GFP_KERNEL),
    );
    let (Ok(mut closed), Ok(mut valid), Ok(queue)) = (lists.0, lists.1, resources.queue_pair())
    else {
        return false;
    };
    for one in mrs {
        match one
            .mr
            .as_any()
            .downcast_mut()
            .and_then(|mr: &mut Mr| mr.take_valid(resources))
        {
            Some((own, reserved)) => {
                // There is room.
                let _ = valid.push_within_capacity(own);
                let _ = closed.push_within_capacity((reserved, &mut *one.done));
            }
            None => *one.done = Some(one.mr.close()),
        }
    }
    if closed.is_empty() {
        return true;
    }
    let mut reserved = closed.iter().map(|(reserved, _)| *reserved);
    let reuse = |mr| {
        let reserved = reserved.next().unwrap_or(false);
        region::put(resources.pool(), reserved, mr);
    };
    // If the device won't let go of one it isn't known of which: none may be freed.
    let done = queue
        .revoke_all(valid, fence, reuse)
        .map_err(|_| refused::stuck());
    for (reserved, answer) in closed {
        if reserved {
            resources.pool().end_reserved();
        }
        *answer = Some(done);
    }
    true
}

impl Mr {
    /// Takes what the device has of it, if that is one valid region; and says whether it is one of
    /// those that were reserved.
    fn take_valid(&mut self, resources: &Resources) -> Option<(rdma::ValidMr, bool)> {
        let State::Open(region) = &mut self.state else {
            return None;
        };
        let valid = region.take_valid(resources)?;
        drop(mem::replace(&mut self.state, State::Idle));
        Some((valid, self.spare.is_some()))
    }
}
