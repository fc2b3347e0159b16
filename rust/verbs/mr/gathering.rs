// SPDX-License-Identifier: GPL-2.0

//! Several registrations that are waited for together: what peers are to reach is prepared one by one, and
//! registered in one go.

use super::Mr;
use crate::{
    link::Link,
    refused,
    region::{
        One,
        Region, //
    },
    resources::Resources, //
};
use core::mem;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    gate::{
        Inside,
        PerCpu, //
    },
    provider::{
        self,
        Keys,
        MrPart,
        Registered, //
    },
    Errno,
    ListVec,
    MrRequest,
    PushReserved,
    Refusal, //
};
use rdma::{
    sg::Memory,
    wc::WrError,
    Few,
    PreparedMr, //
};

/// Regions of one domain that are being registered together. Its device doesn't go away meanwhile.
pub(crate) struct Gathering<'a> {
    /// What there is of each, in the order in which they came.
    parts: ListVec<What>,
    /// Of those that are one region to the device, in the same order.
    prepared: ListVec<PreparedMr<Memory>>,
    link: &'a Arc<Link>,
    // Left last: what was prepared is deregistered before its device goes.
    inside: Inside<'a, Pin<KBox<Resources>>, PerCpu>,
}

/// What there is of one of them.
enum What {
    /// One region to the device, prepared.
    One(One),
    /// The same, which had to be prepared the long way.
    Slow(Region),
    /// Several: enabled by themselves.
    Several(Region),
}

impl<'a> Gathering<'a> {
    /// Of up to so many; `None` without memory for their lists, or without a device. May sleep.
    pub(crate) fn new(link: &'a Arc<Link>, count: usize) -> Option<KBox<Self>> {
        let gathering = Self {
            link,
            inside: link.gate().enter()?,
            parts: ListVec::with_capacity(count, GFP_KERNEL).ok()?,
            prepared: ListVec::with_capacity(count, GFP_KERNEL).ok()?,
        };
        KBox::new(gathering, GFP_KERNEL).ok()
    }

    /// Makes a request's memory ready to be registered. May sleep.
    #[inline]
    fn prepare(&mut self, request: &MrRequest<'_>) -> Result<What, Refusal> {
        let (resources, limits) = (self.inside.get(), self.link.mr_limits());
        if let Some(one) = One::of(resources, limits, request) {
            let list = one.map(resources, request)?;
            if let Some(prepared) = one.prepare(resources, list) {
                self.prepared.push_reserved(prepared);
                return Ok(What::One(one));
            }
        }
        let mut region = Region::idle(None)?;
        region.create(resources, limits, request)?;
        Ok(match region.take_prepared() {
            Some(prepared) => {
                self.prepared.push_reserved(prepared);
                What::Slow(region)
            }
            None => What::Several(region),
        })
    }
}

impl What {
    /// Registers it by itself, with the list of what could not be registered with the others.
    fn alone(
        self,
        resources: &Resources,
        list: impl FnOnce() -> Result<Memory, Refusal>,
    ) -> Result<(Region, Keys), Refusal> {
        // The list is taken whatever becomes of the rest: those behind it are the others'.
        let (mut region, list) = match self {
            Self::One(one) => {
                let list = list()?;
                (one.unregistered()?, list)
            }
            Self::Slow(region) => (region, list()?),
            Self::Several(region) => return region.enabled(resources),
        };
        region.prepare_again(resources, list)?;
        region.enabled(resources)
    }
}

/// The provider's part of what has been registered.
#[inline]
fn told(link: &Arc<Link>, (region, keys): (Region, Keys)) -> Registered {
    Ok((MrPart::new(Mr::open(link, region)), keys))
}

impl provider::Gathering for Gathering<'_> {
    fn add(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        if self.parts.len() == self.parts.capacity() {
            return Err(Errno::EINVAL.into());
        }
        let what = self.prepare(request)?;
        self.parts.push_reserved(what);
        Ok(())
    }

    fn register(&mut self, done: &mut dyn FnMut(Registered)) {
        let (link, resources) = (self.link, self.inside.get());
        let mut parts = mem::take(&mut self.parts).into_iter();
        let prepared = mem::take(&mut self.prepared);
        let queue = match resources.queue_pair() {
            Ok(queue) => queue,
            Err(error) => {
                // The regions are deregistered as what was prepared is dropped.
                drop(prepared);
                let refusal = refused::no_queue(error);
                return parts.for_each(|_| done(Err(refusal)));
            }
        };
        let registered = queue.register_many(prepared, |valid| {
            for what in parts.by_ref() {
                // What is large isn't moved for nothing.
                match what {
                    What::One(_) => return done(told(link, Region::of_one(valid))),
                    What::Slow(mut region) => {
                        let keys = region.set_valid(valid);
                        return done(told(link, (region, keys)));
                    }
                    What::Several(region) => {
                        let enabled = region.enabled(resources);
                        done(enabled.and_then(|enabled| told(link, enabled)));
                    }
                }
            }
        });
        let mut lists = match registered {
            Ok(()) => Ok(Few::new().into_iter()),
            Err(failed) => match (failed.error, failed.lists) {
                // Once is enough to find out that the device does not answer.
                (late @ WrError::TimedOut, Ok(_)) => {
                    Err(refused::not_registered(resources.device(), late))
                }
                // One has failed, or somebody else's request: each by itself fails, or doesn't, for its own reasons.
                (_, lists) => lists.map(Few::into_iter).map_err(refused::not_undone),
            },
        };
        let mut next_list = || match &mut lists {
            Ok(lists) => lists.next().ok_or(Errno::EIO.into()),
            Err(refusal) => Err(*refusal),
        };
        for what in parts {
            let alone = what.alone(resources, &mut next_list);
            done(alone.and_then(|alone| told(link, alone)));
        }
    }
}
