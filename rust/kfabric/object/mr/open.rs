// SPDX-License-Identifier: GPL-2.0

//! Making the region that C gets.

use super::{
    bind_slots::BindSlots,
    close::MrClose,
    mr_ext::MrExt,
    parts::{
        preallocate,
        PreallocatedMr, //
    },
    pending,
    reference::MrRef,
    state::MrState,
    Inner,
    MrBody, //
};
use crate::{
    new_irq_lock,
    object::{descs::DescEntry, domain::DomainObject},
    provider::{
        Keys,
        ProviderMr, //
    },
    region::request::MrRequest,
    support::{
        cache::MrExtBox,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};
use kfi_bindings::kfid_mr;

/// A region that C hasn't been given yet.
///
/// To be [started](Self::start), or else [undone](Self::undo).
pub(super) struct NewMr {
    object: MrRef,
    /// The device's part is left to [`start`](Self::start).
    pending: bool,
}

/// Registers a valid request and makes the object that C gets.
///
/// Sleeps until the device is done; but where an event queue is bound to the domain, that is left
/// to [`NewMr::start`]. A region that has to be bound first stays disabled.
pub(super) fn open(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
) -> Result<NewMr, Refusal> {
    match is_later(domain, request) {
        false => NewMr::register(domain, request, context),
        true => NewMr::create(domain, request, context),
    }
}

/// Checks whether peers reach the region of a request after this call only: when an event queue tells of it, or when it
/// has been bound.
#[inline]
pub(super) fn is_later(domain: &DomainObject, request: &MrRequest<'_>) -> bool {
    domain.eq().is_some() || BindSlots::<(), ()>::of(domain, request).is_missing()
}

impl Inner {
    /// Returns the variable part of a region's object.
    #[inline]
    pub(super) fn new(
        state: MrState,
        mr: Option<ProviderMr>,
        rare: Option<Pin<MrExtBox<MrExt>>>,
        told: bool,
        reserved: bool,
    ) -> Self {
        Self {
            state,
            mr,
            rare,
            held: false,
            awaited: false,
            told,
            reserved,
        }
    }
}

impl MrBody {
    /// Initializes the core's part of a region's object. Transfers find the region by `local`.
    #[inline]
    pub(super) fn new(local: DescEntry, inner: Inner) -> impl PinInit<Self> {
        pin_init!(Self {
            local,
            inner <- new_irq_lock!(inner, c"kfabric_mr"),
        })
    }
}

impl NewMr {
    /// Registers a region at its provider, and then makes the object. A task that ends all open objects waits for its
    /// place. Sleeps until the device is done.
    fn register(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        let register = || domain.provider().register_mr(request);
        let (preallocated, (mr, keys)) = preallocate(domain, request, context, register)?;
        Ok(Self::registered(preallocated, mr, &keys))
    }

    /// Makes the object of a region that is registered. Any context.
    #[inline]
    pub(super) fn registered(
        preallocated: PreallocatedMr<'_>,
        mr: ProviderMr,
        keys: &Keys,
    ) -> Self {
        Self {
            object: preallocated.object(mr, Some(keys)),
            pending: false,
        }
    }

    /// Creates a region at its provider, disabled. If an event queue tells of it, [`start`](Self::start) enables it. May
    /// sleep.
    #[inline(never)]
    pub(super) fn create(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        let create = || domain.provider().create_mr(request);
        let (preallocated, mr) = preallocate(domain, request, context, create)?;
        let object = preallocated.object(mr, None);
        let pending = object.inner.with(|inner| {
            object.wait_while(inner, |inner| inner.held);
            inner.told && inner.begin().is_ok()
        });
        Ok(Self { object, pending })
    }

    /// Closes it, instead of giving it to C. Sleeps.
    pub(super) fn undo(self) -> Result<(), Refusal> {
        let mut closing = MrClose::of_new(self.object);
        let closed = closing.close_provided();
        // The caller tells.
        closing.end(Ok(()));
        closed
    }

    /// Returns the pointer that C gets.
    pub(super) fn as_ptr(&self) -> *mut kfid_mr {
        self.object.as_ptr()
    }

    /// Gives the object to C, which must know of it already: from here on there may be an event.
    /// May sleep.
    pub(super) fn start(self) {
        let left = self.pending.then(|| self.object.clone());
        // C's reference, which `close` takes back; perhaps before this returns.
        let _ = self.object.into_raw();
        if let Some(left) = left {
            pending::leave(left);
        }
    }
}
