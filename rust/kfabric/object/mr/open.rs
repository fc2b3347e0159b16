// SPDX-License-Identifier: GPL-2.0

//! Making the region that C gets.

use super::{
    bonds::Bonds,
    close::Closing,
    enable::{
        Ended,
        Pending, //
    },
    prealloc::preallocate,
    rare::Rare,
    reference::MrRef,
    state::State,
    unsettled,
    Inner,
    MrBody, //
};
use crate::{
    new_irq_lock,
    object::{descs::Local, domain::DomainObject},
    provider::MrPart,
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
use kfi_bindings::kfid_mr;

/// A region that C hasn't been given yet.
///
/// To be [started](Self::start), or else [undone](Self::undo).
pub(super) struct Opened {
    object: MrRef,
    /// The device's part is left to [`start`](Self::start).
    pending: bool,
}

/// Registers a valid request and makes the object that C gets.
///
/// Sleeps until the device is done; but where an event queue is bound to the domain, that is left
/// to [`Opened::start`]. A region that has to be bound first stays disabled.
pub(super) fn open(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
) -> Result<Opened, Refusal> {
    // If an event queue tells of the region, peers can reach it after the event queue can name it.
    let is_bound = Bonds::<(), ()>::of(domain, request).is_missing();
    if domain.eq().is_none() && !is_bound {
        Opened::register(domain, request, context)
    } else {
        create_and_enable(domain, request, context)
    }
}

/// Implements [`open`] in two steps.
#[inline(never)]
fn create_and_enable(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
) -> Result<Opened, Refusal> {
    let mut opened = Opened::create(domain, request, context)?;
    match opened.begin() {
        Some(pending) => opened.end(pending.enable()),
        None => Ok(opened),
    }
}

impl Inner {
    /// Returns the variable part of a region's object.
    #[inline]
    pub(super) fn new(
        state: State,
        mr: Option<MrPart>,
        rare: Option<Pin<MrExtBox<Rare>>>,
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
    pub(super) fn new(local: Local, inner: Inner) -> impl PinInit<Self> {
        pin_init!(Self {
            local,
            inner <- new_irq_lock!(inner, c"kfabric_mr"),
        })
    }
}

impl Opened {
    /// Registers a region at its provider, and then makes the object. A task that ends all open objects waits for its
    /// place. Sleeps until the device is done.
    fn register(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        let register = || domain.provider().register_mr(request);
        let (preallocated, (mr, keys)) = preallocate(domain, request, register)?;
        Ok(Self {
            object: preallocated.object(request, context, mr, Some(&keys)),
            pending: false,
        })
    }

    /// Creates a region at its provider, disabled. May sleep.
    pub(super) fn create(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        let create = || domain.provider().create_mr(request);
        let (preallocated, mr) = preallocate(domain, request, create)?;
        Ok(Self {
            object: preallocated.object(request, context, mr, None),
            pending: false,
        })
    }

    /// Begins to enable the region, unless it has to be bound first, or an event queue is to tell:
    /// then [`start`](Self::start) does. Called once. Sleeps if the device just takes the region.
    pub(super) fn begin(&mut self) -> Option<Pending> {
        let object = &self.object;
        let pending = &mut self.pending;
        object.inner.with(|inner| {
            object.wait_while(inner, |inner| inner.held);
            inner.begin().ok()?;
            *pending = inner.told;
            (!*pending).then(|| inner.take_pending(false))
        })
    }

    /// Notes how that has ended. Sleeps if it must be undone.
    ///
    /// # Errors
    ///
    /// - Why it could not be enabled: then there is no region.
    /// - `ENOTRECOVERABLE`: nor could it be closed.
    pub(super) fn end(self, ended: Ended) -> Result<Self, Refusal> {
        let object = &self.object;
        match object.inner.with(|inner| object.settle(inner, ended)) {
            Ok(()) => Ok(self),
            // The reason why it could not be enabled says more than that it could not be closed; but
            // nobody has it, so nobody else tells that its memory must never be freed.
            Err(refusal) => Err(match self.undo() {
                Ok(()) => refusal,
                Err(_) => refusal.with_errno(Errno::ENOTRECOVERABLE),
            }),
        }
    }

    /// Closes it, instead of giving it to C. Sleeps.
    pub(super) fn undo(self) -> Result<(), Refusal> {
        let mut closing = Closing::of_new(self.object);
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
            unsettled::leave(left);
        }
    }
}
