// SPDX-License-Identifier: GPL-2.0

//! The fields that only some regions need, in memory of their own. A region has them if any of
//! these holds:
//!
//! - An event queue reports that it is enabled.
//! - It is bound to something.
//! - It is a list that can be refreshed.
//! - Its provider keeps memory.
//! - It is reserved, and may become any of these.

use super::bind_slots::BindSlots;
use crate::{
    object::{
        domain::DomainObject,
        endpoint_mrs::{
            EndpointMrLink,
            EndpointMrs, //
        },
        eq::Unread,
        prelude::*, //
    },
    region::lease::Lease,
    support::cache::RARE_SIZE, //
};

/// The fields that only some regions need. Under the region's lock.
#[pin_data]
pub(crate) struct MrExt {
    /// Ties the region to its endpoint while it is enabled.
    #[pin]
    pub(super) tie: EndpointMrLink,
    pub(super) bonds: BindSlots<Arc<CntrCore>, Arc<EndpointMrs>>,
    /// The events that have reported how enabling ended.
    pub(super) said: Said,
    /// The addresses that it was registered at, if they are several, for when other pages are behind them.
    pub(super) list: KVVec<kvec>,
    /// Ends the provider's use of the memory when it is dropped.
    pub(super) lease: Option<Lease>,
    /// The region that was left to the core's workqueue before it, as long as both are.
    pub(super) before: *mut c_void,
}

/// The events that tell how enabling a region ended, which may have been tried before in vain.
#[derive(Default)]
pub(super) enum Said {
    /// There was none.
    #[default]
    Nothing,
    /// There was one, which may have been read.
    Once(Unread),
    /// There were several.
    Again,
}

impl Said {
    /// Notes an event, if there was space for it in the queue.
    pub(super) fn say(&mut self, event: Option<Unread>) {
        *self = match (mem::take(self), event) {
            (before, None) => before,
            (Self::Nothing, Some(event)) => Self::Once(event),
            (_, Some(_)) => Self::Again,
        };
    }
}

// A cache has objects of this size.
const _: () = assert!(size_of::<MrExt>() <= RARE_SIZE);

// SAFETY: The region before it is only handed through, and the addresses are only compared and passed on,
// which any thread may do.
unsafe impl Send for MrExt {}

impl MrExt {
    /// Makes empty fields with space for a list of `count` addresses. May sleep.
    pub(super) fn with_capacity(count: usize) -> Result<Pin<MrExtBox<Self>>, Refusal> {
        let list = KVVec::with_capacity(count, GFP_KERNEL)?;
        let rare = pin_init!(Self {
            tie: EndpointMrLink::new(),
            bonds: BindSlots::NONE,
            said: Said::Nothing,
            list,
            lease: None,
            before: null_mut(),
        });
        match MrExtBox::new_uninit(GFP_KERNEL)?.write_pin_init(rare) {
            Ok(rare) => Ok(rare),
            Err(never) => match never {},
        }
    }

    /// Makes the fields fit the region of a request. Allocates them if they are missing and needed. May sleep.
    pub(super) fn fit(
        rare: &mut Option<Pin<MrExtBox<Self>>>,
        domain: &DomainObject,
        request: &MrRequest<'_>,
        later: Option<EnableConditions>,
    ) -> Result<(), Refusal> {
        let list = list_to_keep(domain, request);
        let leases = domain.mr_limits.leases;
        if rare.is_none() && (later.is_some() || leases || !list.is_empty()) {
            *rare = Some(Self::with_capacity(0)?);
        }
        if let Some(rare) = rare {
            let this = rare.as_mut().project();
            *this.bonds = later.map_or(BindSlots::NONE, |later| {
                BindSlots::wanted(later.counter, later.endpoint)
            });
            this.list.clear();
            this.list.extend_from_slice(list, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Stores `lease` in the region's optional part, and returns the previous lease. Without that
    /// part, returns `lease`. Dropping the returned lease sleeps. Any context.
    pub(super) fn lease(
        rare: &mut Option<Pin<MrExtBox<Self>>>,
        lease: Option<Lease>,
    ) -> Option<Lease> {
        match rare {
            Some(rare) => mem::replace(rare.as_mut().project().lease, lease),
            // Where there is nothing rare, nobody could ask.
            None => lease,
        }
    }

    /// Empties the fields of a region that is gone, for the next region. The space stays.
    pub(super) fn clear(self: Pin<&mut Self>) {
        let this = self.project();
        *this.bonds = BindSlots::NONE;
        *this.said = Said::Nothing;
        this.list.clear();
    }
}

/// Returns the list of a valid request, if it has several segments and its region can be refreshed.
#[inline]
fn list_to_keep<'a>(domain: &DomainObject, request: &MrRequest<'a>) -> &'a [kvec] {
    match request.source {
        Source::Kvec(list) if domain.mr_limits.refresh.is_ok() => match list.entries(usize::MAX) {
            [_] => &[],
            list => list,
        },
        _ => &[],
    }
}

/// The conditions under which peers can reach a region only after its registration call.
#[derive(Clone, Copy)]
pub(super) struct EnableConditions {
    /// An event queue reports that the region is enabled.
    pub(super) told: bool,
    /// The region must be bound to a counter.
    pub(super) counter: bool,
    /// The region must be bound to an endpoint.
    pub(super) endpoint: bool,
}

impl EnableConditions {
    /// Returns the conditions for the region of a request, or `None` if there are none. Any context.
    #[inline]
    pub(super) fn of(domain: &DomainObject, request: &MrRequest<'_>) -> Option<Self> {
        let later = Self {
            told: domain.eq().is_some(),
            counter: request.flags & c::KFI_RMA_EVENT != 0,
            endpoint: domain.has_mode(c::KFI_MR_ENDPOINT),
        };
        (later.told || later.counter || later.endpoint).then_some(later)
    }
}
