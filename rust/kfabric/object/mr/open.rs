// SPDX-License-Identifier: GPL-2.0

//! Making the region that C gets.

use super::{
    asked::{
        place,
        Asked,
        Expected, //
    },
    bonds::Bonds,
    close::Closing,
    enable::{
        Ended,
        Pending, //
    },
    kit::Kit,
    public::Public,
    rare::Rare,
    reference::MrRef,
    reserve,
    state::State,
    unsettled,
    Inner,
    MrBody,
    MrObject, //
};
use crate::{
    new_irq_lock,
    object::{
        descs::Local,
        domain::DomainObject,
        obj::Obj, //
    },
    provider::MrPart,
    region::request::MrRequest,
    support::{
        cache::RareBox,
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
    if is_at_once(domain) && !is_bound(domain, request) {
        Opened::register(domain, request, context)
    } else {
        create_and_enable(domain, request, context)
    }
}

/// As [`open`], in two steps.
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

/// Whether nobody is to be told of a domain's regions before peers can reach them, nor do they come from a
/// reserve.
fn is_at_once(domain: &DomainObject) -> bool {
    domain.eq().is_none() && domain.reserve().is_none()
}

/// Whether the region has to be bound before it is enabled.
fn is_bound(domain: &DomainObject, request: &MrRequest<'_>) -> bool {
    Bonds::<(), ()>::of(domain, request).is_missing()
}

/// What a region is made of, created at its provider, disabled; of the reserve, if there is no memory. May sleep.
fn created(domain: &DomainObject, request: &MrRequest<'_>, told: bool) -> Result<Kit, Refusal> {
    let create = |mut kit: Kit| match kit.create(domain, request, told) {
        Ok(()) => Ok(kit),
        Err(refusal) => {
            let reserved = kit.reserved;
            reserve::put_back(domain, kit);
            Err((refusal, reserved))
        }
    };
    create(reserve::take(domain, request).unwrap_or_else(Kit::new)).or_else(
        |(refusal, reserved)| {
            let no_memory = refusal.errno() == Errno::ENOMEM && !reserved;
            let last = no_memory
                .then(|| reserve::take_last(domain, request))
                .flatten();
            create(last.ok_or(refusal)?).map_err(|(refusal, _)| refusal)
        },
    )
}

impl Inner {
    /// Of a region in this state, with the provider's part.
    #[inline]
    pub(super) fn new(
        state: State,
        mr: Option<MrPart>,
        rare: Option<Pin<RareBox<Rare>>>,
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
    /// That of a region that is found by this.
    #[inline]
    pub(super) fn new(local: Local, inner: Inner) -> impl PinInit<Self> {
        pin_init!(Self {
            local,
            inner <- new_irq_lock!(inner, c"kfabric_mr"),
        })
    }
}

impl Opened {
    /// Registers a region at its provider, and then makes the object. Whoever ends all that is open
    /// waits for its place. Sleeps until the device is done.
    fn register(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        let expected = Expected::new(domain, request, context)?;
        let (mr, keys) = domain.provider().register_mr(request)?;
        Ok(Self {
            object: expected.registered(domain, Asked::of(request), mr, keys),
            pending: false,
        })
    }

    /// Creates a region at its provider, disabled. May sleep.
    pub(super) fn create(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        // Given up after what was not used has gone back.
        let place = place(domain)?;
        // The domain may get one meanwhile.
        let told = domain.eq().is_some();
        let Kit {
            object: Some(object),
            mr,
            mut rare,
            reserved,
        } = created(domain, request, told)?
        else {
            return Err(Errno::EIO.into());
        };
        let c = Public::new(domain, None).to_c(MrObject::fid(context));
        let asked = Asked::of(request);
        let local = asked.local();
        Rare::lease(&mut rare, asked.lease);
        let inner = Inner::new(State::Disabled, mr, rare, told, reserved);
        let body = MrBody::new(local, inner);
        Ok(Self {
            object: MrRef::new(object, Obj::new(c, body, place.take())),
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

    /// How that has ended. Sleeps if it has to be undone.
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

    /// What C gets.
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
