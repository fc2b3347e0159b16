// SPDX-License-Identifier: GPL-2.0

//! A region in its states: prepared, then valid at the device, each once.
//!
//! Each step consumes the one before it, so an error on the way undoes what was done by dropping
//! it. A region is one region of the device, or several that are registered and closed together.

mod at_once;
mod enable;
mod in_steps;
mod lent;
mod now;
mod over;
mod steps;
mod valid;

pub(crate) use self::at_once::One;

use self::{
    enable::keys,
    in_steps::InSteps,
    over::{
        lost,
        Over, //
    }, //
};
use crate::resources::Resources;
use core::{
    mem,
    slice, //
};
use kernel::prelude::*;
use kfabric::{
    provider::{
        Bindings,
        Keys, //
    },
    Errno,
    MrLimits,
    MrRequest,
    RareBox,
    Refusal,
    RemotePiece, //
};
use rdma::{
    sg::{
        Memory,
        SpareTable, //
    },
    Few,
    PreparedMr,
    ValidMr, //
};

/// A region.
pub(crate) enum Region {
    /// One region to the device, [registered at once](at_once), as most are: peers reach it.
    AtOnce(ValidMr),
    /// What was that.
    Over(Over),
    /// One that is made in steps, or again and again.
    InSteps(RareBox<InSteps>),
}

impl Region {
    /// One that is idle, to be [created](Self::create). With a spare list it is one of those that were reserved:
    /// created again and again, taking no memory, if it is one to the device and the list is long enough, and
    /// isn't to be registered on an endpoint. May sleep.
    pub(crate) fn idle(spare: Option<SpareTable>) -> Result<Self, Refusal> {
        Ok(Self::InSteps(InSteps::idle(spare)?))
    }

    /// What is made in steps.
    fn in_steps(&mut self) -> Option<&mut InSteps> {
        match self {
            Self::InSteps(region) => Some(region),
            _ => None,
        }
    }

    /// Takes what was registered at once, and is idle then.
    fn take_at_once(&mut self) -> Option<ValidMr> {
        // What is large isn't moved for nothing.
        if !matches!(self, Self::AtOnce(_)) {
            return None;
        }
        match mem::replace(self, Self::Over(Over::Idle)) {
            Self::AtOnce(mr) => Some(mr),
            _ => None,
        }
    }

    /// It is one of those that were reserved.
    pub(crate) fn is_reserved(&self) -> bool {
        matches!(self, Self::InSteps(region) if region.is_reserved())
    }

    /// It is on the device, enabled or not.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::AtOnce(_) => true,
            Self::Over(over) => over.is_open(),
            Self::InSteps(region) => region.is_open(),
        }
    }

    /// The device or its endpoint went away; `how` the region was taken from the device.
    pub(crate) fn set_ended(&mut self, how: Result<(), Refusal>) {
        self.set_over(Over::Ended {
            stuck: how.is_err(),
        });
    }

    /// The device has nothing of it any more that could be taken from it.
    fn set_over(&mut self, over: Over) {
        match self.in_steps() {
            Some(region) => region.set_over(over),
            None => *self = Self::Over(over),
        }
    }

    /// Checks memory, maps it and takes device regions for it, of one that is idle. May sleep. After an error it
    /// is as idle as before.
    pub(crate) fn create(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let region = self.in_steps().ok_or(Errno::EINVAL)?;
        region.create(resources, limits, request)
    }

    /// Lets peers in, and says how they reach the memory: by all of its device regions or by none.
    /// Sleeps until the device is done; but on a connected endpoint it is for any context.
    ///
    /// # Errors
    ///
    /// It may be tried again after these:
    ///
    /// - `EAGAIN`: the queue of the endpoint is full; or it isn't connected yet, and there is no other queue.
    pub(crate) fn enable(
        &mut self,
        resources: &Resources,
        bindings: &Bindings,
    ) -> Result<Keys, Refusal> {
        let region = self.in_steps().ok_or_else(lost)?;
        region.enable(resources, bindings)
    }

    /// How peers reach what is enabled, device region by device region. May sleep.
    pub(crate) fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        match self {
            Self::AtOnce(mr) => valid::pieces(slice::from_ref(mr)),
            Self::Over(_) => Err(lost()),
            Self::InSteps(region) => region.pieces(),
        }
    }

    /// Puts what is behind the request's addresses now in the place of what was there before.
    /// Sleeps until the device is done.
    ///
    /// After an error the region is as it was, or out of reach for good.
    pub(crate) fn refresh(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        if let Some(region) = self.in_steps() {
            return region.refresh(resources, limits, request);
        }
        let mut valid = Few::one(self.take_at_once().ok_or_else(lost)?);
        let (over, done) = match valid::refresh(&mut valid, resources, limits, request) {
            Ok(()) => (None, Ok(())),
            Err((over, refusal)) => (over, Err(refusal)),
        };
        *self = match (over, valid.take_only()) {
            (None, Some(mr)) => Self::AtOnce(mr),
            (over, _) => Self::Over(over.unwrap_or(Over::Failed)),
        };
        done
    }

    /// Takes the region from the device, and keeps what can be used again; it is idle then, also after an error. Where
    /// that is done with several `together`, the next ones are left to who comes for them. Sleeps until no peer can
    /// reach the memory. `EIO` if the device won't let go of it.
    pub(crate) fn release(&mut self, resources: &Resources, together: bool) -> Result<(), Refusal> {
        if let Some(mr) = self.take_at_once() {
            return valid::release(Few::one(mr), resources, false, together);
        }
        match self.in_steps() {
            Some(region) => region.release(resources, together),
            None => self.released(),
        }
    }

    /// As [`release`](Self::release), by deregistering it, for which no queue is needed.
    pub(crate) fn deregister(&mut self) -> Result<(), Refusal> {
        if let Some(mr) = self.take_at_once() {
            return valid::deregister(Few::one(mr));
        }
        match self.in_steps() {
            Some(region) => region.deregister(),
            None => self.released(),
        }
    }

    /// Whether the device has let go of what was registered at once, and isn't there any more; it is idle then.
    fn released(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Over(over) => mem::replace(over, Over::Idle).released(),
            Self::AtOnce(_) | Self::InSteps(_) => Ok(()),
        }
    }

    /// Takes the region from the device, if its peer has done that already, and it is all that it takes; returns
    /// whether it was, and is idle then. Any context.
    pub(crate) fn release_now(&mut self, resources: &Resources) -> bool {
        let region = self.in_steps();
        region.is_some_and(|region| region.release_now(resources))
    }
}

// What is done with several regions together, of which each is one to the device.
impl Region {
    /// Takes what is to be registered; to be followed by one of the others. `None` if that is several.
    pub(crate) fn take_prepared(&mut self) -> Option<PreparedMr<Memory>> {
        self.in_steps()?.take_prepared()
    }

    /// Peers can reach it; says how.
    pub(crate) fn set_valid(&mut self, valid: ValidMr) -> Keys {
        let keys = keys(slice::from_ref(&valid));
        match self.in_steps() {
            Some(region) => region.set_valid(valid),
            None => *self = Self::AtOnce(valid),
        }
        keys
    }

    /// It could not be registered with the others: it gets another device region. May sleep.
    pub(crate) fn prepare_again(
        &mut self,
        resources: &Resources,
        list: Memory,
    ) -> Result<(), Refusal> {
        let region = self.in_steps().ok_or(Errno::EIO)?;
        region.prepare_again(resources, list)
    }

    /// It could not be registered, nor deregistered for this reason.
    pub(crate) fn not_undone(&mut self, error: Error) {
        self.set_over(Over::not_undone(error));
    }

    /// Takes what peers can reach of it, and makes it idle; `None` if that is several, or nothing. Sleeps until a
    /// registration that is under way has ended.
    pub(crate) fn take_valid(&mut self, resources: &Resources) -> Option<ValidMr> {
        match self {
            Self::InSteps(region) => region.take_valid(resources),
            _ => self.take_at_once(),
        }
    }
}
