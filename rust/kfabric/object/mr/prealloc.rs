// SPDX-License-Identifier: GPL-2.0

//! Allocating all that a region's object takes before the region is valid.
//!
//! The parts come from the caches, or from the domain's reserve.

use super::{
    local::Found,
    mr_ext::MrExt,
    parts::MrParts,
    public::Public,
    reference::{
        Memory,
        MrRef, //
    },
    reserve,
    state::MrState,
    Inner,
    MrBody,
    MrObject, //
};
use crate::{
    object::{
        descs::DescEntry,
        domain::DomainObject,
        obj::Obj,
        place::Coming, //
    },
    provider::{
        Keys,
        ProviderMr, //
    },
    region::request::MrRequest,
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

/// All that the object of a region takes but the provider's part. Nothing is left to fail when the provider has
/// registered the region.
///
/// A task that ends all open objects waits for the place. The place is given up when nothing of the region is left.
pub(super) struct PreallocatedMr<'a> {
    domain: &'a DomainObject,
    memory: Memory,
    rare: Option<Pin<MrExtBox<MrExt>>>,
    reserved: bool,
    told: bool,
    local: DescEntry,
    context: *mut c_void,
    place: Coming<MrBody>,
}

/// Allocates the parts of the object for the region of a request, and then has the provider `make` its own part. The
/// parts come from the domain's reserve if the reserve serves the request, or if there is no memory. May sleep.
///
/// # Errors
///
/// - `ENOSPC`: `mr_cnt` regions are open.
/// - `ENOMEM`
/// - The errors of `make`.
#[inline(always)]
pub(super) fn preallocate<'a, T>(
    domain: &'a DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
    mut make: impl FnMut() -> Result<T, Refusal>,
) -> Result<(PreallocatedMr<'a>, T), Refusal> {
    // Dropped after the parts have gone back.
    let most = domain.max_regions();
    let place = Coming::new_below(domain, most).map_err(|errno| match errno {
        Errno::ENOSPC => Refusal::new(errno, c"mr_cnt regions are open").value(u64::from(most)),
        other => other.into(),
    })?;
    // The domain may get one meanwhile.
    let told = domain.eq().is_some();
    let mut attempt = |mut parts: MrParts| {
        request.set_reserved(parts.reserved);
        let made = parts.fit(domain, request, told).and_then(|()| make());
        match (made, parts.memory.take()) {
            (Ok(made), Some(memory)) => Ok((memory, parts, made)),
            (made, memory) => {
                let reserved = parts.reserved;
                reserve::put_back(domain, MrParts { memory, ..parts });
                Err((made.err().unwrap_or(Errno::EIO.into()), reserved))
            }
        }
    };
    let first = reserve::take(domain, request).unwrap_or(MrParts::NONE);
    let (memory, mut parts, made) = attempt(first).or_else(|(refusal, reserved)| {
        let no_memory = refusal.errno() == Errno::ENOMEM && !reserved;
        let last = no_memory
            .then(|| reserve::take_last(domain, request))
            .flatten();
        attempt(last.ok_or(refusal)?).map_err(|(refusal, _)| refusal)
    })?;
    MrExt::lease(&mut parts.rare, request.take_lease());
    let start = request.kernel_start().unwrap_or(0);
    let preallocated = PreallocatedMr {
        domain,
        memory,
        rare: parts.rare,
        reserved: parts.reserved,
        told,
        local: DescEntry::new(start, request.shape().bytes(), request.access()),
        context,
        place,
    };
    Ok((preallocated, made))
}

impl PreallocatedMr<'_> {
    /// Returns the parts to their source: the region could not be registered. May sleep.
    pub(super) fn undo(mut self) {
        // The memory is the consumer's again.
        drop(MrExt::lease(&mut self.rare, None));
        if self.reserved {
            if let Some(rare) = &mut self.rare {
                rare.as_mut().clear();
            }
        }
        let parts = MrParts {
            memory: Some(self.memory),
            rare: self.rare,
            reserved: self.reserved,
        };
        reserve::put_back(self.domain, parts);
    }

    /// Makes the object of a region. Peers reach the region by `keys`; without keys it is disabled. Any context.
    #[inline(always)]
    pub(super) fn object(self, mr: ProviderMr, keys: Option<&Keys>) -> MrRef {
        let c = Public::new(self.domain, keys).to_c(MrObject::fid(self.context));
        let state = match keys {
            Some(_) => MrState::Enabled,
            None => MrState::Disabled,
        };
        let inner = Inner::new(state, Some(mr), self.rare, self.told, self.reserved);
        let body = MrBody::new(self.local, inner);
        let object = MrRef::new(self.memory, Obj::new(c, body, self.place.take()));
        if let Some(keys) = keys {
            object.reveal(Found::new(keys));
        }
        object
    }
}
