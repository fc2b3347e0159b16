// SPDX-License-Identifier: GPL-2.0

//! A region in its states: prepared, then valid at the device, each once.
//!
//! Each step consumes the one before it. So an error on the way drops what was done, which undoes it. A region
//! consists of one device region, or of several that are registered and closed together.

mod lent;
mod over;
mod register;
mod spec;
mod valid;

pub(crate) use self::{
    register::{
        register_request,
        Batch, //
    },
    spec::MrSpec,
    valid::revoke, //
};

use self::{
    lent::Lent,
    over::{
        lost,
        Over, //
    },
    spec::put,
    valid::keys, //
};
use crate::{
    lists,
    refused,
    resources::Resources, //
};
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
    lent::Settled,
    mr::{
        FastMr,
        Fence, //
    },
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
    /// Peers reach it by one device region, as most regions.
    Valid(ValidMr),
    /// The device has nothing of it that could be taken from it.
    Over(Over),
    /// Any other region.
    Boxed(RareBox<Boxed>),
}

/// A region in memory of its own: one that is registered in a second call or on an endpoint, has several device
/// regions, or comes from the reserve.
pub(crate) struct Boxed {
    /// The attributes of its device regions.
    specs: Few<MrSpec>,
    /// The entries of its list, if it comes from the reserve.
    spare: Option<SpareTable>,
    state: State,
}

// There is a cache for such.
const _: () = assert!(size_of::<Boxed>() <= kfabric::RARE_SIZE);

enum State {
    /// The device has nothing of it that could be taken from it.
    Over(Over),
    /// Its memory is mapped; no peer reaches it yet.
    Prepared(Few<PreparedMr<Memory>>),
    /// The same, to be registered on an endpoint; or it was, and peers reach it who got the key by that.
    Lent(Lent),
    /// Peers reach it.
    Valid(Few<ValidMr>),
}

impl Region {
    /// Creates an idle region, to be [created](Self::create). With a spare list it comes from the reserve: `create`
    /// takes no memory, if the region has one device region, the list is long enough and the domain registers on its
    /// own queue. May sleep.
    pub(crate) fn idle(spare: Option<SpareTable>) -> Result<Self, Refusal> {
        let boxed = Boxed {
            specs: Few::new(),
            spare,
            state: State::Over(Over::Idle),
        };
        Ok(Self::Boxed(RareBox::new(boxed, GFP_KERNEL)?))
    }

    /// Returns the region that consists of a device region, and how peers reach it.
    #[inline]
    pub(crate) fn of_valid(valid: ValidMr) -> (Self, Keys) {
        let keys = keys(slice::from_ref(&valid));
        (Self::Valid(valid), keys)
    }

    fn boxed(&mut self) -> Option<&mut Boxed> {
        match self {
            Self::Boxed(region) => Some(region),
            _ => None,
        }
    }

    /// Takes the device region of one that is [`Valid`](Self::Valid), which is idle then.
    fn take_valid(&mut self) -> Option<ValidMr> {
        // What is large isn't moved for nothing.
        if !matches!(self, Self::Valid(_)) {
            return None;
        }
        match mem::replace(self, Self::Over(Over::Idle)) {
            Self::Valid(mr) => Some(mr),
            _ => None,
        }
    }

    /// Checks whether it comes from the reserve.
    pub(crate) fn is_reserved(&self) -> bool {
        matches!(self, Self::Boxed(region) if region.is_reserved())
    }

    /// Checks whether it is on the device, enabled or not.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Valid(_) => true,
            Self::Over(over) => over.is_open(),
            Self::Boxed(region) => match region.state {
                State::Over(over) => over.is_open(),
                _ => true,
            },
        }
    }

    /// Notes `how` the region was taken from the device, since the device or the endpoint went away.
    pub(crate) fn set_ended(&mut self, how: Result<(), Refusal>) {
        self.set_over(Over::Ended {
            stuck: how.is_err(),
        });
    }

    fn set_over(&mut self, over: Over) {
        match self.boxed() {
            Some(region) => region.state = State::Over(over),
            None => *self = Self::Over(over),
        }
    }

    /// Checks memory, maps it and takes device regions for it, for an idle region. After an error it is as idle as
    /// before. May sleep.
    pub(crate) fn create(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let region = self.boxed().ok_or(Errno::EINVAL)?;
        region.specs = MrSpec::all(resources, limits, request, region.is_reserved())?;
        let lists = lists::map(resources, request, &region.specs, region.spare.as_ref())?;
        let mut prepared = lists.try_map(GFP_KERNEL, |index, list| {
            let spec = region.specs.get(index).ok_or(Errno::EIO)?;
            spec.prepare(resources, list)
        })?;
        let lent = match resources.lends() {
            true => prepared.take_only(),
            false => None,
        };
        region.state = match lent {
            Some(mr) => State::Lent(Lent::new(mr.lend().map_err(refused::no_region)?)),
            None => State::Prepared(prepared),
        };
        Ok(())
    }

    /// Lets peers in, and returns how they reach the memory: by all of its device regions or by none.
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
        let region = self.boxed().ok_or_else(lost)?;
        if let (State::Lent(lent), Some(endpoint)) = (&mut region.state, &bindings.endpoint) {
            if let Some(keys) = lent.register(endpoint, bindings.more)? {
                return Ok(keys);
            }
            if !resources.has_queue() {
                let why = c"the endpoint isn't connected yet, and the device has no other queue";
                return Err(Refusal::new(Errno::EAGAIN, why));
            }
        }
        // Not posted yet, so this doesn't sleep.
        region.land(Fence::DEREGISTER, drop);
        let valid = region.register(resources)?;
        Ok(self.set_valid(valid))
    }

    /// Notes the device regions by which peers reach it from now on, and returns how.
    fn set_valid(&mut self, mut valid: Few<ValidMr>) -> Keys {
        let keys = keys(&valid);
        match self.boxed() {
            Some(region) if region.is_reserved() || valid.len() > 1 => {
                region.state = State::Valid(valid);
            }
            // Nothing but the device region is needed any more.
            _ => {
                if let Some(only) = valid.take_only() {
                    *self = Self::Valid(only);
                }
            }
        }
        keys
    }

    /// Lets peers in, and returns how they reach the memory. Sleeps until the device is done.
    ///
    /// # Errors
    ///
    /// There is no region then. `ENOTRECOVERABLE` says that the device won't let go of the memory.
    #[inline(never)]
    pub(crate) fn enabled(mut self, resources: &Resources) -> Result<(Self, Keys), Refusal> {
        match self.enable(resources, &Bindings::NONE) {
            Ok(keys) => Ok((self, keys)),
            Err(refusal) => Err(match self.release(resources, false) {
                Ok(()) => refusal,
                Err(_) => refusal.with_errno(Errno::ENOTRECOVERABLE),
            }),
        }
    }

    /// Returns how peers reach what is enabled, device region by device region. May sleep.
    pub(crate) fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        match self {
            Self::Valid(mr) => valid::pieces(slice::from_ref(mr)),
            Self::Over(_) => Err(lost()),
            Self::Boxed(region) => match &region.state {
                State::Valid(valid) => valid::pieces(valid),
                State::Lent(lent) => {
                    let mut pieces = KVec::new();
                    pieces.push(lent.piece(), GFP_KERNEL)?;
                    Ok(pieces)
                }
                _ => Err(lost()),
            },
        }
    }

    /// Replaces the memory by what is behind the request's addresses now. Sleeps until the device is done.
    ///
    /// After an error the region is as it was, or out of reach for good.
    pub(crate) fn refresh(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let mut valid = match self {
            Self::Boxed(region) => region.take_refreshable(resources)?,
            _ => Few::one(self.take_valid().ok_or_else(lost)?),
        };
        let done = valid::refresh(&mut valid, resources, limits, request);
        match (done, self.boxed()) {
            (Err((Some(over), _)), _) => self.set_over(over),
            (_, Some(region)) => region.state = State::Valid(valid),
            (_, None) => {
                *self = valid
                    .take_only()
                    .map_or(Self::Over(Over::Failed), Self::Valid);
            }
        }
        done.map_err(|(_, refusal)| refusal)
    }

    /// Takes the region from the device, and keeps what can be used again; it is idle then, also after an error. Where
    /// several regions are released `together`, this makes no new device regions. Sleeps until no peer can reach the
    /// memory.
    ///
    /// # Errors
    ///
    /// - `EIO`: the device won't let go of it.
    pub(crate) fn release(&mut self, resources: &Resources, together: bool) -> Result<(), Refusal> {
        if let Some(mr) = self.take_valid() {
            return valid::release(Few::one(mr), resources, false, together);
        }
        let reserved = self.is_reserved();
        match self.take_landed(resources.fence(), |mr| put(resources.pool(), reserved, mr)) {
            State::Prepared(prepared) => {
                prepared.consume(|prepared| {
                    let (mr, list) = prepared.unmap();
                    drop(list);
                    put(resources.pool(), reserved, mr);
                });
                Ok(())
            }
            State::Valid(valid) => valid::release(valid, resources, reserved, together),
            State::Over(over) => over.released(),
            State::Lent(_) => Ok(()),
        }
    }

    /// Takes the region from the device, as [`release`](Self::release), by deregistering it, which takes no queue.
    pub(crate) fn deregister(&mut self) -> Result<(), Refusal> {
        if let Some(mr) = self.take_valid() {
            return valid::deregister(Few::one(mr));
        }
        match self.take_landed(Fence::DEREGISTER, drop) {
            State::Valid(valid) => valid::deregister(valid),
            State::Over(over) => over.released(),
            // Dropping what no peer could reach deregisters it too.
            State::Prepared(_) | State::Lent(_) => Ok(()),
        }
    }

    /// Takes the state of one that is not [`Valid`](Self::Valid), and leaves it idle. Sleeps until a registration on
    /// an endpoint has ended.
    fn take_landed(&mut self, fence: Fence, put: impl FnOnce(FastMr)) -> State {
        match self {
            Self::Boxed(region) => {
                region.land(fence, put);
                mem::replace(&mut region.state, State::Over(Over::Idle))
            }
            Self::Over(over) => State::Over(mem::replace(over, Over::Idle)),
            Self::Valid(_) => State::Over(Over::Idle),
        }
    }

    /// Takes the region from the device if its peer has done that already and nothing else is needed. Returns whether
    /// it was, and is idle then. Any context.
    pub(crate) fn release_now(&mut self, resources: &Resources) -> bool {
        self.boxed()
            .is_some_and(|region| region.release_now(resources))
    }
}

// Of several regions that are registered or closed together, each of which has one device region.
impl Region {
    /// Moves the device region to a batch, to be followed by [`set_registered`](Self::set_registered). Returns `false`
    /// if there are several, or none that is prepared for the domain's queue.
    pub(crate) fn join(&mut self, batch: &mut Batch) -> bool {
        let Some(Boxed { specs, state, .. }) = self.boxed() else {
            return false;
        };
        let State::Prepared(prepared) = state else {
            return false;
        };
        let (Some(spec), Some(only)) = (specs.first(), prepared.take_only()) else {
            return false;
        };
        batch.push(*spec, only);
        *state = State::Over(Over::Failed);
        true
    }

    /// Notes how the registration of a device region that joined a batch has ended, and returns how peers reach it.
    pub(crate) fn set_registered(
        &mut self,
        done: Result<ValidMr, Refusal>,
    ) -> Result<Keys, Refusal> {
        match done {
            Ok(valid) => Ok(self.set_valid(Few::one(valid))),
            Err(refusal) => {
                self.set_over(Over::after(&refusal));
                Err(refusal)
            }
        }
    }

    /// Takes the device region that peers can reach, and makes the region idle; `None` if there are several or none.
    /// Sleeps until a registration on an endpoint has ended.
    pub(crate) fn take_only(&mut self, resources: &Resources) -> Option<ValidMr> {
        let reserved = self.is_reserved();
        let Some(region) = self.boxed() else {
            return self.take_valid();
        };
        region.land(resources.fence(), |mr| put(resources.pool(), reserved, mr));
        let State::Valid(valid) = &mut region.state else {
            return None;
        };
        let only = valid.take_only()?;
        region.state = State::Over(Over::Idle);
        Some(only)
    }
}

impl Boxed {
    fn is_reserved(&self) -> bool {
        self.spare.is_some()
    }

    /// Registers what is prepared on the domain's queue. Sleeps until the device is done.
    fn register(&mut self, resources: &Resources) -> Result<Few<ValidMr>, Refusal> {
        let State::Prepared(prepared) = &mut self.state else {
            return Err(lost());
        };
        let prepared = mem::take(prepared);
        self.state = State::Over(Over::Failed);
        // Allocated first: nothing is left to fail when the regions are valid.
        let mut valid = Few::with_capacity(prepared.len(), GFP_KERNEL)?;
        let mut failed: Result<(), Refusal> = Ok(());
        register::register(resources, &self.specs, prepared, |done| match done {
            Ok(mr) => valid.push_reserved(mr),
            Err(refusal) if Over::after(&refusal).released().is_err() => failed = Err(refusal),
            Err(refusal) => failed = failed.and(Err(refusal)),
        });
        if let Err(refusal) = failed {
            let over = Over::after(&refusal);
            // Peers reach all of them or none.
            let left = valid::deregister(valid);
            self.state = State::Over(left.map_or(Over::Stuck, |()| over));
            return Err(refusal);
        }
        Ok(valid)
    }

    /// Finds out what has become of a registration on an endpoint, if there was one. A device region that the peer has
    /// ended goes to `put`. Sleeps until the registration has ended.
    fn land(&mut self, fence: Fence, put: impl FnOnce(FastMr)) {
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

    /// Takes the device regions that are to get other memory. May sleep.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the registration on the endpoint has not ended yet.
    /// - `EIO`: the region is out of reach for good.
    fn take_refreshable(&mut self, resources: &Resources) -> Result<Few<ValidMr>, Refusal> {
        if matches!(&self.state, State::Lent(lent) if !lent.is_settled()) {
            let why = c"nothing has completed yet behind the region's registration";
            return Err(Refusal::new(Errno::EAGAIN, why));
        }
        let reserved = self.is_reserved();
        self.land(resources.fence(), |mr| put(resources.pool(), reserved, mr));
        match &mut self.state {
            State::Valid(valid) => Ok(mem::take(valid)),
            _ => Err(lost()),
        }
    }

    /// Implements [`Region::release_now`].
    fn release_now(&mut self, resources: &Resources) -> bool {
        let State::Lent(lent) = &self.state else {
            return false;
        };
        if !self.specs.iter().all(MrSpec::is_pooled) {
            return false;
        }
        let Some(fence) = lent.free_by(resources.fence()) else {
            return false;
        };
        let Some(room) = resources.pool().room() else {
            return false;
        };
        if let State::Lent(lent) = mem::replace(&mut self.state, State::Over(Over::Idle)) {
            match lent.into_free(fence) {
                Ok(mr) => room.put(mr),
                Err(lent) => self.state = State::Lent(lent),
            }
        }
        !matches!(self.state, State::Lent(_))
    }
}
