// SPDX-License-Identifier: GPL-2.0

//! A region that is registered before there is an object of it.

use super::{
    local::Found,
    public::Public,
    ranges,
    rare::Rare,
    reference::{
        self,
        Memory,
        MrRef, //
    },
    state::State,
    Inner,
    MrBody,
    MrObject, //
};
use crate::{
    object::{
        descs::Local,
        domain::DomainObject,
        obj::Obj,
        place::Coming, //
    },
    provider::{
        Keys,
        MrPart, //
    },
    region::{
        access::Access,
        lease::Lease,
        request::MrRequest, //
    },
    support::{
        cache::MrExtBox,
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};

/// A place for a region in its domain.
#[inline]
pub(super) fn place(domain: &DomainObject) -> Result<Coming<MrBody>, Refusal> {
    let most = domain.max_regions();
    Coming::new_below(domain, most).map_err(|errno| match errno {
        Errno::ENOSPC => Refusal::new(errno, c"mr_cnt regions are open").value(u64::from(most)),
        other => other.into(),
    })
}

/// What is kept of a request when there is an object.
pub(super) struct Asked {
    start: u64,
    bytes: u64,
    access: Access,
    pub(super) lease: Option<Lease>,
}

impl Asked {
    /// That of a request that a provider has taken.
    #[inline]
    pub(super) fn of(request: &MrRequest<'_>) -> Self {
        Self {
            start: request.kernel_start().unwrap_or(0),
            bytes: request.shape().bytes(),
            access: request.access(),
            // Dropped when the region is closed.
            lease: request.take_lease(),
        }
    }

    /// What the region is found by.
    #[inline]
    pub(super) fn local(&self) -> Local {
        Local::new(self.start, self.bytes, self.access)
    }
}

/// All that an object needs but its region, so that nothing is left to fail when that is registered. Who ends all
/// that is open waits for its place, which is given up when there is nothing of the region any more.
pub(super) struct Expected {
    place: Coming<MrBody>,
    memory: Memory,
    rare: Option<Pin<MrExtBox<Rare>>>,
    context: *mut c_void,
}

impl Expected {
    /// Of the region that a request is for. May sleep.
    #[inline(always)]
    pub(super) fn new(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        let place = place(domain)?;
        let memory = reference::memory()?;
        // It needn't be bound, and no event queue tells of it.
        let rare = match ranges::to_keep(domain, request) {
            [] if !domain.mr_limits().leases => None,
            list => Some(Rare::with_list(list)?),
        };
        Ok(Self {
            place,
            memory,
            rare,
            context,
        })
    }

    /// The object of the region that is registered now. Any context.
    #[inline(always)]
    pub(super) fn registered(
        mut self,
        domain: &DomainObject,
        asked: Asked,
        mr: MrPart,
        keys: Keys,
    ) -> MrRef {
        let found = Found::new(&keys);
        let c = Public::new(domain, Some(&keys)).to_c(MrObject::fid(self.context));
        let local = asked.local();
        Rare::lease(&mut self.rare, asked.lease);
        let inner = Inner::new(State::Enabled, Some(mr), self.rare, false, false);
        let body = MrBody::new(local, inner);
        let object = MrRef::new(self.memory, Obj::new(c, body, self.place.take()));
        object.reveal(found);
        object
    }
}
