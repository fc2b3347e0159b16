// SPDX-License-Identifier: GPL-2.0

//! What regions are made of that must not fail for want of memory: kept in their domain, and used
//! again.
//!
//! Lock order: the lock of a reserve is a leaf.

use super::kit::Kit;
use crate::{
    new_irq_lock,
    object::domain::DomainObject,
    region::request::MrRequest,
    support::{
        irqlock::IrqLock,
        num::widen,
        refusal::Refusal,
        task::frees_memory,
        vec::{
            Fifo,
            PushReserved, //
        }, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    }, //
};

/// The reserve of a domain.
#[pin_data]
pub(crate) struct Reserve {
    /// Most pages, and segments, of a region.
    pages: usize,
    /// In the order in which they came back, so that no key is used again soon.
    #[pin]
    kits: IrqLock<Fifo<Kit>>,
}

impl Reserve {
    /// Makes what `count` regions of up to so many pages need. May sleep.
    pub(crate) fn new(
        domain: &DomainObject,
        count: usize,
        pages: usize,
    ) -> Result<Arc<Self>, Refusal> {
        let mut kits = Fifo::with_capacity(count)?;
        let mut spare = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            spare.push(Kit::reserved(segments(domain, pages))?, GFP_KERNEL)?;
        }
        let place = UniqueArc::<Self>::new_uninit(GFP_KERNEL)?;
        // The last that can fail: nothing takes it back from the provider.
        let mrs = domain.provider().reserve(count, pages)?;
        for (mut kit, mr) in spare.into_iter().zip(mrs) {
            kit.lend(mr);
            kits.push_reserved(kit);
        }
        let reserve = pin_init!(Self {
            pages,
            kits <- new_irq_lock!(kits, c"kfabric_reserve"),
        });
        match place.pin_init_with(reserve) {
            Ok(reserve) => Ok(reserve.into()),
            Err(never) => match never {},
        }
    }

    /// What a region can be made of, if it is one that was thought of. Any context.
    fn take(&self, request: &MrRequest<'_>) -> Option<Kit> {
        let shape = request.shape();
        let fits = shape.pages() <= widen(self.pages)
            && request.source().count() <= self.pages
            && shape.gap().is_none();
        if fits {
            self.kits.with(|kits| kits.pop())
        } else {
            None
        }
    }

    /// Takes it back. Any context.
    fn put(&self, kit: Kit) {
        self.kits.with(|kits| kits.push_reserved(kit));
    }
}

/// How many segments of a region are kept, for when it is refreshed.
fn segments(domain: &DomainObject, pages: usize) -> usize {
    match domain.mr_limits().refresh {
        Ok(()) => pages,
        Err(_) => 0,
    }
}

/// The reserve of a domain, if it has one.
fn of(domain: &DomainObject) -> Option<&Reserve> {
    domain.reserve()?.downcast_ref()
}

/// What a region can be made of, if the domain has a reserve for such. Process context.
///
/// Where regions are registered on endpoints it is left to who frees memory, and to who has
/// [found none](take_last): there regions are made of what their peer has ended, whose rights
/// are those of its use before, and what is reserved is for any.
pub(super) fn take(domain: &DomainObject, request: &MrRequest<'_>) -> Option<Kit> {
    match domain.has_mode(kfi_bindings::KFI_MR_ENDPOINT) && !frees_memory() {
        true => None,
        false => take_last(domain, request),
    }
}

/// The same, for who has found no memory. Any context.
pub(super) fn take_last(domain: &DomainObject, request: &MrRequest<'_>) -> Option<Kit> {
    of(domain)?.take(request)
}

/// Gives it back to the domain, if it came from there; else frees it, which may sleep.
pub(super) fn put_back(domain: &DomainObject, kit: Kit) {
    match of(domain) {
        Some(reserve) if kit.reserved => reserve.put(kit),
        _ => drop(kit),
    }
}
