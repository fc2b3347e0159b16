// SPDX-License-Identifier: GPL-2.0

//! Several regions in one go: their work requests are waited for together.
//!
//! Regions of several pieces are enabled and closed by themselves.

use super::{
    release,
    Mr, //
};
use crate::{
    link::Link,
    refused,
    region::Region,
    resources::Resources, //
};
use kernel::prelude::*;
use kfabric::{
    provider::{
        self,
        Closing,
        Enabling, //
    },
    Errno,
    ListVec,
    PushReserved,
    Refusal, //
};
use rdma::{
    wc::WrError,
    Few, //
};

/// Enables several. Sleeps until the device is done with all. Without memory for a list of them each is
/// enabled by itself: those that were reserved don't fail for that.
pub(crate) fn enable_many(link: &Link, mrs: &mut [Enabling<'_>]) {
    let Some(inside) = link.gate().enter() else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(Err(refused::gone())));
        return;
    };
    let resources = inside.get();
    let Ok(mut prepared) = ListVec::with_capacity(mrs.len(), GFP_KERNEL) else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(one.mr.enable(one.bindings)));
        return;
    };
    for one in mrs.iter_mut() {
        match region_of(one.mr) {
            Ok(region) => match region.take_prepared() {
                Some(own) => prepared.push_reserved(own),
                None => *one.done = Some(region.enable(resources, one.bindings)),
            },
            Err(refusal) => *one.done = Some(Err(refusal)),
        }
    }
    if prepared.is_empty() {
        return;
    }
    // Those that aren't done are the ones that have given what is prepared.
    let mut waiting = mrs.iter_mut().filter(|one| one.done.is_none());
    let queue = match resources.queue_pair() {
        Ok(queue) => queue,
        Err(error) => {
            // The regions are deregistered as what was prepared is dropped.
            let refusal = refused::no_queue(error);
            return waiting.for_each(|one| *one.done = Some(Err(refusal)));
        }
    };
    let registered = queue.register_many(prepared, |valid| {
        if let Some(one) = waiting.next() {
            *one.done = Some(region_of(one.mr).map(|region| region.set_valid(valid)));
        }
    });
    if let Err(failed) = registered {
        match (failed.error, failed.lists) {
            // Once is enough to find out that the device does not answer.
            (late @ WrError::TimedOut, Ok(_)) => {
                let refusal = refused::not_registered(resources.device(), late);
                waiting.for_each(|one| *one.done = Some(Err(refusal)));
            }
            (_, lists) => one_by_one(resources, waiting, lists),
        }
    }
}

/// The region of one of this provider's, if its device is there.
fn region_of(mr: &mut dyn provider::Mr) -> Result<&mut Region, Refusal> {
    match mr.as_any().downcast_mut().map(Mr::region) {
        Some(region) => region,
        None => Err(Errno::EINVAL.into()),
    }
}

/// One has failed, or somebody else's request: each by itself fails, or doesn't, for its own reasons.
fn one_by_one<'a, 'b: 'a>(
    resources: &Resources,
    waiting: impl Iterator<Item = &'a mut Enabling<'b>>,
    lists: Result<Few<rdma::sg::Memory>>,
) {
    let mut lists = lists.map(Few::into_iter);
    for one in waiting {
        *one.done = Some(region_of(one.mr).and_then(|region| match &mut lists {
            Ok(lists) => {
                let list = lists.next().ok_or(Errno::EIO)?;
                region.prepare_again(resources, list)?;
                region.enable(resources, one.bindings)
            }
            Err(error) => {
                region.not_undone(*error);
                Err(refused::not_undone(*error))
            }
        }));
    }
}

/// Closes several. Sleeps until no peer can reach any.
pub(crate) fn close_many(link: &Link, mrs: &mut [Closing<'_>]) {
    let Some(inside) = link.gate().enter() else {
        return each_by_itself(mrs);
    };
    let resources = inside.get();
    if !resources.fence().invalidates() {
        for one in mrs {
            *one.done = Some(match one.mr.as_any().downcast_mut() {
                Some(Mr { region, .. }) => release(region, resources, true),
                None => one.mr.close(),
            });
        }
    } else if !invalidated(resources, mrs) {
        each_by_itself(mrs);
    }
}

fn each_by_itself(mrs: &mut [Closing<'_>]) {
    for one in mrs {
        *one.done = Some(one.mr.close());
    }
}

/// Invalidates several together, where that is the fence; or does nothing.
fn invalidated(resources: &Resources, mrs: &mut [Closing<'_>]) -> bool {
    let lists = (
        ListVec::with_capacity(mrs.len(), GFP_KERNEL),
        ListVec::with_capacity(mrs.len(), GFP_KERNEL),
    );
    let (Ok(mut valid), Ok(mut free), Ok(queue)) = (lists.0, lists.1, resources.queue_pair())
    else {
        return false;
    };
    for one in mrs.iter_mut() {
        let mr: Option<&mut Mr> = one.mr.as_any().downcast_mut();
        match mr.and_then(|mr| mr.region.take_valid(resources)) {
            Some(own) => valid.push_reserved(own),
            None => *one.done = Some(one.mr.close()),
        }
    }
    if valid.is_empty() {
        return true;
    }
    // Those that aren't done are the ones that have given what is valid.
    let mut given = mrs.iter_mut().filter(|one| one.done.is_none());
    let reuse = |mr| match given.next().is_some_and(is_reserved) {
        true => resources.pool().put_reserved(mr),
        false => free.push_reserved(mr),
    };
    // If the device won't let go of one it isn't known of which: none may be freed.
    let done = queue
        .revoke_all(valid, resources.fence(), reuse)
        .map_err(|_| refused::stuck());
    // Those that are left were not invalidated.
    let left = given.count();
    if left > 0 {
        resources.pool().not_invalidated(left);
    }
    resources.pool().put_all(free);
    for one in mrs.iter_mut().filter(|one| one.done.is_none()) {
        if is_reserved(one) {
            resources.pool().end_reserved();
        }
        *one.done = Some(done);
    }
    true
}

/// Whether it is one of those that were reserved.
fn is_reserved(one: &mut Closing<'_>) -> bool {
    let mr: Option<&mut Mr> = one.mr.as_any().downcast_mut();
    mr.is_some_and(|mr| mr.region.is_reserved())
}
