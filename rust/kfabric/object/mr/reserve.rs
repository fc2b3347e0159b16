// SPDX-License-Identifier: GPL-2.0

//! The parts of regions that must not fail for lack of memory. The domain keeps them, and uses them again.
//!
//! Lock order: the lock of a reserve is a leaf.

use super::parts::MrParts;
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
    free: IrqLock<Fifo<MrParts>>,
}

impl Reserve {
    /// Allocates the parts of `count` regions of up to `pages` pages. May sleep.
    pub(crate) fn new(
        domain: &DomainObject,
        count: usize,
        pages: usize,
    ) -> Result<Arc<Self>, Refusal> {
        let mut free = Fifo::with_capacity(count)?;
        for _ in 0..count {
            free.push_reserved(MrParts::reserved(segments(domain, pages))?);
        }
        let place = UniqueArc::<Self>::new_uninit(GFP_KERNEL)?;
        // The last that can fail: nothing takes it back from the provider.
        domain.provider().reserve(count, pages)?;
        let reserve = pin_init!(Self {
            pages,
            free <- new_irq_lock!(free, c"kfabric_reserve"),
        });
        match place.pin_init_with(reserve) {
            Ok(reserve) => Ok(reserve.into()),
            Err(never) => match never {},
        }
    }

    /// Takes the parts of a region, if the request fits the reserve. Any context.
    fn take(&self, request: &MrRequest<'_>) -> Option<MrParts> {
        let shape = request.shape();
        let fits = shape.pages() <= widen(self.pages)
            && request.source().count() <= self.pages
            && shape.gap().is_none();
        if fits {
            self.free.with(|free| free.pop())
        } else {
            None
        }
    }

    /// Takes the parts of a closed region back. Any context.
    fn put(&self, parts: MrParts) {
        self.free.with(|free| free.push_reserved(parts));
    }
}

/// Returns how many segments of a region the core keeps, for a refresh.
fn segments(domain: &DomainObject, pages: usize) -> usize {
    match domain.mr_limits().refresh {
        Ok(()) => pages,
        Err(_) => 0,
    }
}

/// Returns the reserve of a domain, if it has one.
fn of(domain: &DomainObject) -> Option<&Reserve> {
    domain.reserve()?.downcast_ref()
}

/// Takes the parts of a region from the domain's reserve, if the request fits. Process context. May sleep.
///
/// In a domain that registers on endpoints, the reserve serves tasks that free memory, and requests that
/// [found none](take_last). Other requests there use device regions that the peer has ended. These keep their rights,
/// and a device region of the reserve may get any.
pub(super) fn take(domain: &DomainObject, request: &MrRequest<'_>) -> Option<MrParts> {
    match domain.has_mode(kfi_bindings::KFI_MR_ENDPOINT) && !frees_memory() {
        true => None,
        false => take_last(domain, request),
    }
}

/// Takes the parts, as [`take`], for a request that has found no memory. May sleep.
pub(super) fn take_last(domain: &DomainObject, request: &MrRequest<'_>) -> Option<MrParts> {
    let parts = of(domain)?.take(request)?;
    domain.provider().use_reserve(true);
    Some(parts)
}

/// Returns parts to the domain's reserve, if they came from there, or frees them. May sleep, but not after
/// [`MrOps::close_now`](crate::provider::MrOps::close_now).
pub(super) fn put_back(domain: &DomainObject, parts: MrParts) {
    match of(domain) {
        Some(reserve) if parts.reserved => {
            domain.provider().use_reserve(false);
            reserve.put(parts);
        }
        _ => drop(parts),
    }
}
