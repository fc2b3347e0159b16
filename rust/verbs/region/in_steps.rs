// SPDX-License-Identifier: GPL-2.0

//! A region that is made in steps: first prepared, then registered.

use super::{
    lent::Lent,
    over::{
        lost,
        Over, //
    },
    steps::{
        put,
        Steps,
        BASE, //
    },
    valid, //
};
use crate::{
    refused,
    resources::Resources, //
};
use core::mem;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use kfabric::{
    num::widen,
    Errno,
    MrLimits,
    MrRequest,
    Piece,
    RareBox,
    Refusal, //
};
use rdma::{
    lent::Settled,
    mr::{
        FastMr,
        Fence, //
    },
    sg::{
        Memory,
        SpareTable, //
    },
    AccessFlags,
    Few,
    PreparedMr,
    ValidMr, //
};

/// It, in memory of its own.
pub(crate) struct InSteps {
    pub(super) steps: Steps,
    pub(super) state: State,
}

// There is a cache for such.
const _: () = assert!(size_of::<InSteps>() <= kfabric::RARE_SIZE);

/// How far it has come.
pub(super) enum State {
    /// The device has nothing of it that could be taken from it.
    Over(Over),
    /// Its memory is mapped; no peer reaches it yet.
    Prepared(Few<PreparedMr<Memory>>),
    /// The same, to be registered on an endpoint; or it was, and peers reach it who got the key by that.
    Lent(Lent),
    /// Peers reach it.
    Valid(Few<ValidMr>),
}

impl InSteps {
    /// One that is idle. With a spare list it is one of those that were reserved. May sleep.
    pub(super) fn idle(spare: Option<SpareTable>) -> Result<RareBox<Self>, Refusal> {
        Self::new(Steps::new(spare), Over::Idle)
    }

    /// One that is one to the device, of which that has nothing yet, as it could not be registered at once. May
    /// sleep.
    pub(super) fn unregistered(
        piece: Piece,
        access: AccessFlags,
        together: bool,
    ) -> Result<RareBox<Self>, Refusal> {
        Self::new(Steps::of(piece, access, together), Over::Failed)
    }

    fn new(steps: Steps, over: Over) -> Result<RareBox<Self>, Refusal> {
        let state = State::Over(over);
        Ok(RareBox::new(Self { steps, state }, GFP_KERNEL)?)
    }

    /// It is one of those that were reserved.
    pub(super) fn is_reserved(&self) -> bool {
        self.steps.is_reserved()
    }

    /// It is on the device, enabled or not.
    pub(super) fn is_open(&self) -> bool {
        match self.state {
            State::Over(over) => over.is_open(),
            _ => true,
        }
    }

    /// The device has nothing of it any more that could be taken from it.
    pub(super) fn set_over(&mut self, over: Over) {
        self.state = State::Over(over);
    }

    /// As [`Region::create`](super::Region::create).
    pub(super) fn create(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let mut prepared = self.steps.take(resources, limits, request)?;
        let lent = match resources.lends() {
            true => prepared.take_only(),
            false => None,
        };
        self.state = match lent {
            Some(mr) => State::Lent(Lent::new(mr.lend().map_err(refused::no_region)?)),
            None => State::Prepared(prepared),
        };
        Ok(())
    }

    /// What has become of it, if it was registered on an endpoint. Sleeps until that has ended.
    pub(super) fn land(&mut self, fence: Fence, put: impl FnOnce(FastMr)) {
        // What is large isn't moved for nothing.
        if !matches!(self.state, State::Lent(_)) {
            return;
        }
        match mem::replace(&mut self.state, State::Over(Over::Failed)) {
            State::Lent(lent) => match lent.settle(fence) {
                Settled::Unposted(mr) => self.state = State::Prepared(Few::one(mr)),
                Settled::Valid(mr) => self.state = State::Valid(Few::one(mr)),
                Settled::Free(mr) => put(mr),
                Settled::Gone => (),
                Settled::Stuck => self.state = State::Over(Over::Stuck),
            },
            state => self.state = state,
        }
    }

    /// As [`Region::refresh`](super::Region::refresh).
    pub(super) fn refresh(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        if matches!(&self.state, State::Lent(lent) if !lent.is_settled()) {
            let why = c"nothing has completed yet behind the region's registration";
            return Err(Refusal::new(Errno::EAGAIN, why));
        }
        let reserved = self.is_reserved();
        self.land(resources.fence(), |mr| put(resources.pool(), reserved, mr));
        let State::Valid(valid) = &mut self.state else {
            return Err(lost());
        };
        let done = valid::refresh(valid, resources, limits, request);
        done.map_err(|(over, refusal)| {
            if let Some(over) = over {
                self.state = State::Over(over);
            }
            refusal
        })
    }

    /// As [`Region::release`](super::Region::release).
    pub(super) fn release(&mut self, resources: &Resources, together: bool) -> Result<(), Refusal> {
        let reserved = self.is_reserved();
        self.land(resources.fence(), |mr| put(resources.pool(), reserved, mr));
        match mem::replace(&mut self.state, State::Over(Over::Idle)) {
            State::Prepared(prepared) => {
                self.steps.undo(resources, prepared);
                Ok(())
            }
            State::Valid(valid) => valid::release(valid, resources, reserved, together),
            State::Over(over) => over.released(),
            State::Lent(_) => Ok(()),
        }
    }

    /// As [`Region::deregister`](super::Region::deregister).
    pub(super) fn deregister(&mut self) -> Result<(), Refusal> {
        self.land(Fence::DEREGISTER, drop);
        match mem::replace(&mut self.state, State::Over(Over::Idle)) {
            State::Valid(valid) => valid::deregister(valid),
            State::Over(over) => over.released(),
            // Dropping what no peer could reach deregisters it too.
            State::Prepared(_) | State::Lent(_) => Ok(()),
        }
    }
}

const _: () = assert!(BASE % widen(PAGE_SIZE) == 0);
