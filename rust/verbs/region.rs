// SPDX-License-Identifier: GPL-2.0

//! A region in its states: prepared, then valid at the device, each once.
//!
//! Each step consumes the one before it. So an error on the way drops what was done, which undoes it. A region
//! consists of one device region, or of several that are registered and closed together.

mod register;
mod spec;
mod valid;

use self::valid::{
    lost,
    Closed, //
};

use crate::{
    ep::EpRegion,
    lists,
    prelude::*, //
};
use kfabric::{
    provider::Bindings,
    MrExtBox,
    MrExtMemory, //
};
use rdma::endpoint_mr::Settled;

pub(crate) use self::{
    register::{
        register_request,
        Batch, //
    },
    spec::{
        MrSpec,
        BASE, //
    },
    valid::revoke, //
};

/// A region.
pub(crate) enum Region {
    /// Peers reach it by one device region, as most regions.
    Valid(ValidMr),
    /// The device has none of its device regions.
    Over(Closed),
    /// Any other region.
    Boxed(MrExtBox<Boxed>),
}

/// A region in memory of its own: one that is registered in a second call or on an endpoint, or has several device
/// regions.
pub(crate) struct Boxed {
    /// The attributes of its device regions.
    specs: SmallVec<MrSpec>,
    state: State,
}

enum State {
    /// The device has none of its device regions.
    Over(Closed),
    /// Its memory is mapped; no peer reaches it yet.
    Prepared(SmallVec<PreparedMr<Memory>>),
    /// Its memory is mapped. The region is to be registered on an endpoint; or it was, and a peer
    /// that got the key there reaches it.
    OnEndpoint(EpRegion),
    /// Peers reach it.
    Valid(SmallVec<ValidMr>),
}

impl Region {
    /// Returns the region that consists of a device region, and how peers reach it.
    #[inline]
    pub(crate) fn of_valid(valid: ValidMr) -> (Self, Keys) {
        let keys = valid::keys(slice::from_ref(&valid));
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
        // Moving a large value costs more than this check.
        if !matches!(self, Self::Valid(_)) {
            return None;
        }
        match mem::replace(self, Self::Over(Closed::Idle)) {
            Self::Valid(mr) => Some(mr),
            _ => None,
        }
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
        self.set_over(Closed::Ended {
            stuck: how.is_err(),
        });
    }

    fn set_over(&mut self, over: Closed) {
        match self.boxed() {
            Some(region) => region.state = State::Over(over),
            None => *self = Self::Over(over),
        }
    }

    /// Creates a region of a request, disabled: checks its memory, maps it and takes device regions for it. May sleep.
    ///
    /// A request that [is reserved](MrRequest::is_reserved) takes no memory, if the domain registers on its own queue.
    pub(crate) fn create(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<Self, Refusal> {
        let specs = MrSpec::all(resources, limits, request)?;
        let lists = lists::map(resources, request, &specs)?;
        let mut prepared = lists.try_map(GFP_KERNEL, |index, list| {
            let spec = specs.get(index).ok_or(Errno::EIO)?;
            spec.prepare(resources, list)
        })?;
        let only = match resources.lends {
            true => prepared.take_only(),
            false => None,
        };
        let state = match only {
            Some(mr) => State::OnEndpoint(EpRegion::new(mr)?),
            None => State::Prepared(prepared),
        };
        // Taken last: from here on the memory returns to the reserve when it is not needed any more.
        let reserved = match request.is_reserved() {
            true => resources.pool.take_memory(),
            false => None,
        };
        let memory = match reserved {
            Some(memory) => memory,
            None => MrExtMemory::new()?,
        };
        Ok(Self::Boxed(memory.write(Boxed { specs, state })))
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
        if let (State::OnEndpoint(mr), Some(endpoint)) = (&mut region.state, &bindings.endpoint) {
            if let Some(keys) = mr.register(endpoint, bindings.more)? {
                return Ok(keys);
            }
            if resources.queue.is_none() {
                let why = c"the endpoint isn't connected yet, and the device has no other queue";
                return Err(Refusal::new(Errno::EAGAIN, why));
            }
        }
        // Not posted yet, so this doesn't sleep.
        region.land(Fence::DEREGISTER, drop);
        let valid = region.register(resources)?;
        Ok(self.set_valid(resources, valid))
    }

    /// Notes the device regions by which peers reach it from now on, and returns how.
    fn set_valid(&mut self, resources: &Resources, mut valid: SmallVec<ValidMr>) -> Keys {
        let keys = valid::keys(&valid);
        match valid.take_only() {
            // Nothing but the device region is needed any more.
            Some(only) => self.replace(resources, Self::Valid(only)),
            None => {
                if let Some(region) = self.boxed() {
                    region.state = State::Valid(valid);
                }
            }
        }
        keys
    }

    /// Replaces the region, whose own memory is not needed any more. May sleep.
    fn replace(&mut self, resources: &Resources, by: Self) {
        if let Self::Boxed(region) = mem::replace(self, by) {
            resources.pool.put_memory(MrExtMemory::of(region));
        }
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

    /// Returns how peers reach each device region of an enabled region. May sleep.
    pub(crate) fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        match self {
            Self::Valid(mr) => valid::pieces(slice::from_ref(mr)),
            Self::Over(_) => Err(lost()),
            Self::Boxed(region) => match &region.state {
                State::Valid(valid) => valid::pieces(valid),
                State::OnEndpoint(mr) => {
                    let mut pieces = KVec::new();
                    pieces.push(valid::piece(mr.prepared()), GFP_KERNEL)?;
                    Ok(pieces)
                }
                _ => Err(lost()),
            },
        }
    }

    /// Replaces the memory by the pages that the request's addresses have now. Sleeps until the
    /// device is done.
    ///
    /// # Errors
    ///
    /// After an error, the region is unchanged, or no peer can reach it any more.
    ///
    /// - `EAGAIN`: the registration on the endpoint has not ended yet.
    pub(crate) fn refresh(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let mut valid = match self {
            Self::Boxed(region) => {
                if matches!(&region.state, State::OnEndpoint(mr) if !mr.is_settled()) {
                    let why = c"nothing has completed yet behind the region's registration";
                    return Err(Refusal::new(Errno::EAGAIN, why));
                }
                region.land(resources.fence, |mr| resources.pool.put(mr));
                match &mut region.state {
                    State::Valid(valid) => mem::take(valid),
                    _ => return Err(lost()),
                }
            }
            _ => SmallVec::one(self.take_valid().ok_or_else(lost)?),
        };
        let done = valid::refresh(&mut valid, resources, limits, request);
        match (done, self.boxed()) {
            (Err((Some(over), _)), _) => self.set_over(over),
            (_, Some(region)) => region.state = State::Valid(valid),
            (_, None) => {
                *self = valid
                    .take_only()
                    .map_or(Self::Over(Closed::Failed), Self::Valid);
            }
        }
        done.map_err(|(_, refusal)| refusal)
    }

    /// Takes the region from the device, and keeps device regions for others; it is idle then, also after an error. Where
    /// several regions are released `together`, this makes no new device regions. Sleeps until no peer can reach the
    /// memory.
    ///
    /// # Errors
    ///
    /// - `EIO`: the device won't let go of it.
    pub(crate) fn release(&mut self, resources: &Resources, together: bool) -> Result<(), Refusal> {
        if let Some(mr) = self.take_valid() {
            return valid::release(SmallVec::one(mr), resources, together);
        }
        let state = self.take_landed(resources.fence, |mr| resources.pool.put(mr));
        self.replace(resources, Self::Over(Closed::Idle));
        match state {
            State::Prepared(prepared) => {
                prepared.consume(|prepared| {
                    let (mr, list) = prepared.unmap();
                    drop(list);
                    resources.pool.put(mr);
                });
                Ok(())
            }
            State::Valid(valid) => valid::release(valid, resources, together),
            State::Over(over) => over.released(),
            State::OnEndpoint(_) => Ok(()),
        }
    }

    /// Takes the region from the device, as [`release`](Self::release), by deregistering it, which takes no queue.
    pub(crate) fn deregister(&mut self) -> Result<(), Refusal> {
        if let Some(mr) = self.take_valid() {
            return valid::deregister(SmallVec::one(mr));
        }
        match self.take_landed(Fence::DEREGISTER, drop) {
            State::Valid(valid) => valid::deregister(valid),
            State::Over(over) => over.released(),
            // Dropping them deregisters their device regions, which no peer could reach.
            State::Prepared(_) | State::OnEndpoint(_) => Ok(()),
        }
    }

    /// Takes the state of one that is not [`Valid`](Self::Valid), and leaves it idle. Sleeps until a registration on
    /// an endpoint has ended.
    fn take_landed(&mut self, fence: Fence, put: impl FnOnce(FastMr)) -> State {
        match self {
            Self::Boxed(region) => {
                region.land(fence, put);
                mem::replace(&mut region.state, State::Over(Closed::Idle))
            }
            Self::Over(over) => State::Over(mem::replace(over, Closed::Idle)),
            Self::Valid(_) => State::Over(Closed::Idle),
        }
    }

    /// Takes the region from the device if its peer has done that already and nothing else is needed. Returns whether
    /// it was, and is idle then. Any context.
    pub(crate) fn release_now(&mut self, resources: &Resources) -> bool {
        let fence = resources.fence;
        let Some(region) = self.boxed() else {
            return false;
        };
        match &region.state {
            State::OnEndpoint(mr) if region.is_pooled() && mr.is_free_by(fence) => (),
            _ => return false,
        }
        let Some(room) = resources.pool.room() else {
            return false;
        };
        let mut is_free = false;
        // `is_free_by` has found that the device registered the region and that the peer
        // invalidated it, so this doesn't sleep.
        region.land(fence, |mr| {
            resources.pool.put_back(room, mr);
            is_free = true;
        });
        if is_free {
            region.state = State::Over(Closed::Idle);
        }
        is_free
    }
}

// Several regions are registered or closed together here. Each has one device region.
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
        *state = State::Over(Closed::Failed);
        true
    }

    /// Notes how the registration of a device region that joined a batch has ended, and returns how peers reach it.
    pub(crate) fn set_registered(
        &mut self,
        resources: &Resources,
        done: Result<ValidMr, Refusal>,
    ) -> Result<Keys, Refusal> {
        match done {
            Ok(valid) => Ok(self.set_valid(resources, SmallVec::one(valid))),
            Err(refusal) => {
                self.set_over(Closed::after(&refusal));
                Err(refusal)
            }
        }
    }

    /// Takes the device region that peers can reach, and makes the region idle; `None` if there are several or none.
    /// Sleeps until a registration on an endpoint has ended.
    pub(crate) fn take_only(&mut self, resources: &Resources) -> Option<ValidMr> {
        let Some(region) = self.boxed() else {
            return self.take_valid();
        };
        region.land(resources.fence, |mr| resources.pool.put(mr));
        let State::Valid(valid) = &mut region.state else {
            return None;
        };
        let only = valid.take_only()?;
        self.replace(resources, Self::Over(Closed::Idle));
        Some(only)
    }
}

impl Boxed {
    /// Checks whether the pool keeps its device regions, which the reserve does not.
    fn is_pooled(&self) -> bool {
        self.specs.iter().all(MrSpec::is_pooled)
    }

    /// Registers what is prepared on the domain's queue. Sleeps until the device is done.
    fn register(&mut self, resources: &Resources) -> Result<SmallVec<ValidMr>, Refusal> {
        let State::Prepared(prepared) = &mut self.state else {
            return Err(lost());
        };
        let prepared = mem::take(prepared);
        self.state = State::Over(Closed::Failed);
        // Allocated first: nothing is left to fail when the regions are valid.
        let mut valid = SmallVec::with_capacity(prepared.len(), GFP_KERNEL)?;
        let mut failed: Result<(), Refusal> = Ok(());
        register::register(resources, &self.specs, prepared, |done| match done {
            Ok(mr) => valid.push_reserved(mr),
            Err(refusal) if Closed::after(&refusal).released().is_err() => failed = Err(refusal),
            Err(refusal) => failed = failed.and(Err(refusal)),
        });
        if let Err(refusal) = failed {
            let over = Closed::after(&refusal);
            // Peers reach all of them or none.
            let left = valid::deregister(valid);
            self.state = State::Over(left.map_or(Closed::Stuck, |()| over));
            return Err(refusal);
        }
        Ok(valid)
    }

    /// Waits for a registration on an endpoint, if there was one. A device region that the peer has
    /// ended goes to `put`. Sleeps until the registration has ended, unless it has already.
    fn land(&mut self, fence: Fence, put: impl FnOnce(FastMr)) {
        // Moving a large value costs more than this check.
        if !matches!(self.state, State::OnEndpoint(_)) {
            return;
        }
        match mem::replace(&mut self.state, State::Over(Closed::Failed)) {
            State::OnEndpoint(mr) => match mr.settle(fence) {
                Settled::Unposted(mr) => self.state = State::Prepared(SmallVec::one(mr)),
                Settled::Valid(mr) => self.state = State::Valid(SmallVec::one(mr)),
                // The reserve has device regions for any rights.
                Settled::Free(mr) if mr.keeps_rights() && !self.is_pooled() => drop(mr),
                Settled::Free(mr) => put(mr),
                Settled::Gone => (),
                Settled::Stuck => self.state = State::Over(Closed::Stuck),
            },
            state => self.state = state,
        }
    }
}
