// SPDX-License-Identifier: GPL-2.0

//! Letting peers in.

use super::{
    in_steps::{
        InSteps,
        State, //
    },
    over::{
        lost,
        Over, //
    },
    steps::put,
    valid, //
};
use crate::{
    refused,
    resources::Resources, //
};
use core::mem;
use kernel::prelude::*;
use kfabric::{
    num,
    provider::{
        Bindings,
        Keys, //
    },
    Errno,
    Refusal,
    RemotePiece, //
};
use rdma::{
    mr::Fence,
    sg::Memory,
    Few,
    PreparedMr,
    ValidMr,
    WrError, //
};

/// How often a registration is tried when others' failures take it down.
///
/// Only what was flushed is tried again, and the others' failures are their devices' or drivers':
/// so many in a row mean that something is wrong with all of them.
const ATTEMPTS: u32 = 8;

impl InSteps {
    /// As [`Region::enable`](super::Region::enable).
    pub(super) fn enable(
        &mut self,
        resources: &Resources,
        bindings: &Bindings,
    ) -> Result<Keys, Refusal> {
        if let (State::Lent(lent), Some(endpoint)) = (&mut self.state, &bindings.endpoint) {
            if let Some(keys) = lent.register(endpoint, bindings.more)? {
                return Ok(keys);
            }
            if !resources.has_queue() {
                let why = c"the endpoint isn't connected yet, and the device has no other queue";
                return Err(Refusal::new(Errno::EAGAIN, why));
            }
        }
        // Not posted yet, so this doesn't sleep.
        self.land(Fence::DEREGISTER, drop);
        self.enable_by_queue(resources)
    }

    /// As [`enable`](Self::enable), by the registration queue.
    fn enable_by_queue(&mut self, resources: &Resources) -> Result<Keys, Refusal> {
        let mut prepared = match &mut self.state {
            State::Prepared(prepared) => mem::take(prepared),
            _ => return Err(lost()),
        };
        self.state = State::Over(Over::Failed);
        for _ in 0..ATTEMPTS {
            let queue = resources.queue_pair().map_err(refused::no_queue)?;
            let failed = match queue.register_all(prepared) {
                Ok(valid) => {
                    let keys = keys(&valid);
                    self.state = State::Valid(valid);
                    return Ok(keys);
                }
                Err(failed) => failed,
            };
            let why = failed.error;
            let lists = failed.lists.map_err(|error| {
                self.state = State::Over(Over::not_undone(error));
                refused::not_undone(error)
            })?;
            if !matches!(why, WrError::Flushed) {
                return Err(refused::not_registered(resources.device(), why));
            }
            // Others are to blame.
            prepared = self.steps.prepare(resources, lists)?;
        }
        Err(refused::not_registered(
            resources.device(),
            WrError::Flushed,
        ))
    }
}

impl InSteps {
    /// How peers reach what is enabled, device region by device region. May sleep.
    pub(super) fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        match &self.state {
            State::Valid(valid) => valid::pieces(valid),
            State::Lent(lent) => {
                let mut pieces = KVec::new();
                pieces.push(lent.piece(), GFP_KERNEL)?;
                Ok(pieces)
            }
            _ => Err(lost()),
        }
    }
}

// What is done with several regions together, of which each is one to the device.
impl InSteps {
    /// Takes what is to be registered; to be followed by one of the others. `None` if that is several.
    pub(super) fn take_prepared(&mut self) -> Option<PreparedMr<Memory>> {
        let State::Prepared(prepared) = &mut self.state else {
            return None;
        };
        let only = prepared.take_only()?;
        self.state = State::Over(Over::Failed);
        Some(only)
    }

    /// Peers can reach it.
    pub(super) fn set_valid(&mut self, valid: ValidMr) {
        self.state = State::Valid(Few::one(valid));
    }

    /// It could not be registered with the others: it gets another device region. May sleep.
    pub(super) fn prepare_again(
        &mut self,
        resources: &Resources,
        list: Memory,
    ) -> Result<(), Refusal> {
        self.state = State::Prepared(self.steps.prepare(resources, Few::one(list))?);
        Ok(())
    }

    /// Takes what peers can reach of it, and makes it idle; `None` if that is several, or nothing. Sleeps until a
    /// registration that is under way has ended.
    pub(super) fn take_valid(&mut self, resources: &Resources) -> Option<ValidMr> {
        let reserved = self.is_reserved();
        self.land(resources.fence(), |mr| put(resources.pool(), reserved, mr));
        let State::Valid(valid) = &mut self.state else {
            return None;
        };
        let only = valid.take_only()?;
        self.state = State::Over(Over::Idle);
        Some(only)
    }
}

/// How peers reach regions.
#[inline]
pub(super) fn keys(valid: &[ValidMr]) -> Keys {
    Keys {
        key: valid.first().map_or(0, |mr| u64::from(mr.rkey())),
        base: valid.first().map_or(0, ValidMr::iova),
        // A work request's segment lies in one device region: there is no key for several.
        desc: match valid {
            [one] => num::index(one.lkey()),
            _ => 0,
        },
        whole: valid.len() <= 1,
    }
}
