// SPDX-License-Identifier: GPL-2.0

//! Several regions that wait for the device once.
//!
//! Regions of several device regions are registered and closed by themselves.

use super::{
    release,
    Mr, //
};
use crate::{
    link::Link,
    refused,
    region::{
        revoke,
        Batch,
        Region, //
    },
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

/// Enables several regions. Without memory for a batch this enables each by itself, so that regions of the reserve
/// don't fail. Sleeps until the device is done with all of them.
pub(crate) fn enable_many(link: &Link, mrs: &mut [Enabling<'_>]) {
    let Some(inside) = link.gate().enter() else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(Err(refused::gone())));
        return;
    };
    let resources = inside.get();
    let Ok(mut batch) = Batch::with_capacity(mrs.len()) else {
        mrs.iter_mut()
            .for_each(|one| *one.done = Some(one.mr.enable(one.bindings)));
        return;
    };
    for one in mrs.iter_mut() {
        *one.done = match region_of(one.mr) {
            Ok(region) => match region.join(&mut batch) {
                true => None,
                false => Some(region.enable(resources, one.bindings)),
            },
            Err(refusal) => Some(Err(refusal)),
        };
    }
    // Those that aren't done are in the batch.
    let mut waiting = mrs.iter_mut().filter(|one| one.done.is_none());
    batch.register(resources, |registered| {
        if let Some(one) = waiting.next() {
            let region = region_of(one.mr);
            *one.done = Some(region.and_then(|region| region.set_registered(registered)));
        }
    });
}

/// Returns the region of an object of this provider, if its device is there.
fn region_of(mr: &mut dyn provider::Mr) -> Result<&mut Region, Refusal> {
    match mr.as_any().downcast_mut().map(Mr::region) {
        Some(region) => region,
        None => Err(Errno::EINVAL.into()),
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

/// Invalidates several together, where that is the fence; or does nothing and returns `false`.
fn invalidated(resources: &Resources, mrs: &mut [Closing<'_>]) -> bool {
    let lists = (
        ListVec::with_capacity(mrs.len(), GFP_KERNEL),
        ListVec::with_capacity(mrs.len(), GFP_KERNEL),
    );
    let (Ok(mut valid), Ok(mut free)) = lists else {
        return false;
    };
    for one in mrs.iter_mut() {
        let mr: Option<&mut Mr> = one.mr.as_any().downcast_mut();
        match mr.and_then(|mr| mr.region.take_only(resources)) {
            Some(own) => valid.push_reserved(own),
            None => *one.done = Some(one.mr.close()),
        }
    }
    if valid.is_empty() {
        return true;
    }
    // Those that aren't done have given their device region.
    let mut given = mrs.iter_mut().filter(|one| one.done.is_none());
    // If the device won't let go of one, it isn't known of which: none may be freed.
    let done = revoke(resources, valid, |mr| {
        match given.next().is_some_and(is_reserved) {
            true => resources.pool().put_reserved(mr),
            false => free.push_reserved(mr),
        }
    });
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
