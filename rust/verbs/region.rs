// SPDX-License-Identifier: GPL-2.0

//! A region in its states: prepared, then valid at the device, each once.
//!
//! Each step consumes the one before it, so an error on the way undoes what was done by dropping
//! it. A region is one region of the device, or several that are registered and closed together.

mod at_once;
mod enable;
mod lent;
mod now;
mod steps;

pub(crate) use self::at_once::One;

use self::{
    lent::Lent,
    steps::{
        put,
        Steps,
        BASE, //
    }, //
};
use crate::{
    lists,
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
    RareBox,
    Refusal, //
};
use rdma::{
    lent::Settled,
    mr::{
        FastMr,
        Fence,
        Kind, //
    },
    sg::SpareTable,
    Few,
    RefreshError,
    ValidMr, //
};

/// A region.
pub(crate) struct Region {
    /// What it has if it is made in steps.
    steps: Option<RareBox<Steps>>,
    state: State,
}

/// How far a region has come.
enum State {
    /// Not created, or closed.
    Idle,
    /// Its memory is mapped; no peer reaches it yet. The rest is in its steps.
    Prepared,
    /// The same, to be registered on an endpoint; or it was, and peers reach it who got the key by that.
    Lent(Lent),
    /// Peers reach it.
    Valid(Few<ValidMr>),
    /// A step failed: no peer reaches it, for good.
    Failed,
    /// The device won't let go of some of it: its memory must never be freed.
    Stuck,
    /// The device or its endpoint went away, and the device had let go of it, or won't.
    Ended { stuck: bool },
}

impl Region {
    /// One that is idle, to be [created](Self::create). With a spare list it is one of those that were reserved:
    /// created again and again, taking no memory, if it is one to the device and the list is long enough, and
    /// isn't to be registered on an endpoint. May sleep.
    pub(crate) fn idle(spare: Option<SpareTable>) -> Result<Self, Refusal> {
        Ok(Self {
            steps: Some(Steps::new(spare)?),
            state: State::Idle,
        })
    }

    /// It is one of those that were reserved.
    pub(crate) fn is_reserved(&self) -> bool {
        self.steps.as_ref().is_some_and(|steps| steps.is_reserved())
    }

    /// It is on the device, enabled or not.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Idle | State::Ended { .. })
    }

    /// The device or its endpoint went away; `how` the region was taken from the device.
    pub(crate) fn set_ended(&mut self, how: Result<(), Refusal>) {
        self.state = State::Ended {
            stuck: how.is_err(),
        };
    }

    /// Checks memory, maps it and takes device regions for it, of one that is idle. May sleep. After an error it
    /// is as idle as before.
    pub(crate) fn create(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let steps = self.steps.as_mut().ok_or(Errno::EINVAL)?;
        steps.take(resources, limits, request)?;
        let lent = match resources.lends() {
            true => steps.prepared.take_only(),
            false => None,
        };
        self.state = match lent {
            Some(mr) => State::Lent(Lent::new(mr.lend().map_err(refused::no_region)?)),
            None => State::Prepared,
        };
        Ok(())
    }

    /// What has become of it, if it was registered on an endpoint. Sleeps until that has ended.
    fn land(&mut self, fence: Fence, put: impl FnOnce(FastMr)) {
        // What is large isn't moved for nothing.
        if !matches!(self.state, State::Lent(_)) {
            return;
        }
        match mem::replace(&mut self.state, State::Failed) {
            State::Lent(lent) => match lent.settle(fence) {
                Settled::Unposted(mr) => {
                    if let Some(steps) = &mut self.steps {
                        steps.prepared = Few::one(mr);
                        self.state = State::Prepared;
                    }
                }
                Settled::Valid(mr) => self.state = State::Valid(Few::one(mr)),
                Settled::Free(mr) => put(mr),
                Settled::Gone => (),
                Settled::Stuck => self.state = State::Stuck,
            },
            state => self.state = state,
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
        let fence = resources.fence();
        if matches!(&self.state, State::Lent(lent) if !lent.is_settled()) {
            let why = c"nothing has completed yet behind the region's registration";
            return Err(Refusal::new(Errno::EAGAIN, why));
        }
        let reserved = self.is_reserved();
        self.land(fence, |mr| put(resources.pool(), reserved, mr));
        let State::Valid(valid) = &mut self.state else {
            return Err(lost());
        };
        let runs = lists::runs(limits, request)?;
        let bytes = runs.iter().map(|run| run.bytes);
        if !bytes.eq(valid.iter().map(ValidMr::length)) {
            return Err(Refusal::new(Errno::EINVAL, c"the region had another shape"));
        }
        let lists = lists::map(resources, request, &runs, None)?;
        let queue = resources.queue_pair().map_err(refused::no_queue)?;
        queue.refresh_all(valid, lists, fence).map_err(|error| {
            match error {
                RefreshError::Untouched(_) => (),
                RefreshError::Gone => self.state = State::Failed,
                RefreshError::Leaked => self.state = State::Stuck,
            }
            refused::not_refreshed(error)
        })
    }

    /// Takes the region from the device, and keeps what can be used again; it is idle then, also after an error. Where
    /// that is done with several `together`, the next ones are left to who comes for them. Sleeps until no peer can
    /// reach the memory. `EIO` if the device won't let go of it.
    pub(crate) fn release(&mut self, resources: &Resources, together: bool) -> Result<(), Refusal> {
        let fence = resources.fence();
        let reserved = self.is_reserved();
        let put = |mr| put(resources.pool(), reserved, mr);
        self.land(fence, put);
        match mem::replace(&mut self.state, State::Idle) {
            State::Prepared => {
                if let Some(steps) = &mut self.steps {
                    steps.undo(resources);
                }
                Ok(())
            }
            State::Valid(valid) if fence.invalidates() => match resources.queue_pair() {
                Ok(queue) => queue
                    .revoke_all(valid, fence, put)
                    .map_err(|_| refused::stuck()),
                Err(_) => deregister(valid),
            },
            State::Valid(valid) => {
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
            state => state.released(),
        }
    }

    /// As [`release`](Self::release), by deregistering it, for which no queue is needed.
    pub(crate) fn deregister(&mut self) -> Result<(), Refusal> {
        self.land(Fence::DEREGISTER, drop);
        match mem::replace(&mut self.state, State::Idle) {
            State::Prepared => {
                // Dropping what no peer could reach deregisters it too.
                if let Some(steps) = &mut self.steps {
                    steps.prepared = Few::new();
                }
                Ok(())
            }
            State::Valid(valid) => deregister(valid),
            state => state.released(),
        }
    }
}

impl State {
    /// Whether the device has let go of what is not there to be taken from it.
    fn released(&self) -> Result<(), Refusal> {
        match self {
            Self::Stuck | Self::Ended { stuck: true } => Err(refused::stuck()),
            _ => Ok(()),
        }
    }
}

fn deregister(valid: Few<ValidMr>) -> Result<(), Refusal> {
    let mut result = Ok(());
    valid.consume(|mr| result = mr.deregister().and(result));
    result.map_err(|_| refused::stuck())
}

fn lost() -> Refusal {
    Refusal::new(Errno::EIO, c"the region is out of reach for good")
}

const _: () = assert!(BASE % widen(PAGE_SIZE) == 0);
