// SPDX-License-Identifier: GPL-2.0

//! Making the region that C gets.

use super::{
    enable::{
        self,
        Ended,
        Pending, //
    },
    kit::Kit,
    local::Found,
    public::Public,
    reserve,
    state::State,
    Inner,
    MrBody,
    MrObject, //
};
use crate::{
    object::{
        children::Counted,
        descs::Local,
        domain::DomainObject,
        obj::Obj,
        place::Coming, //
    },
    provider::Mr,
    region::{
        access::Access,
        request::MrRequest, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_void,
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::kfid_mr;

/// A region that was registered, with perhaps the device's part still to be done.
pub(super) struct Opened {
    object: Arc<MrObject>,
    pending: bool,
}

impl Opened {
    /// What C gets.
    pub(super) fn as_ptr(&self) -> *mut kfid_mr {
        Arc::as_ptr(&self.object).cast_mut().cast()
    }

    /// Gives up the only reference, instead of giving it to C.
    pub(super) fn into_object(self) -> Arc<MrObject> {
        self.object
    }

    /// Gives the object to C, which must know of it already: from here on there may be an event.
    /// May sleep.
    pub(super) fn start(self) {
        let work = self.pending.then(|| self.object.clone());
        // C's reference, which `close` takes back; perhaps before this returns.
        let _ = Arc::into_raw(self.object);
        if let Some(work) = work {
            enable::queue(work);
        }
    }
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
    let mut made = Made::new(domain, request, context)?;
    if let Some(pending) = made.begin() {
        let ended = pending.enable();
        if let Err(refusal) = made.end(ended) {
            let closed = made.provided().map_or(Ok(()), |mr| mr.close());
            return Err(not_enabled(refusal, closed));
        }
    }
    made.open()
}

/// A region that was created at its provider, and is no object yet. Dropping it gives back what it
/// is made of, and doesn't close it at the provider.
pub(super) struct Made<'a> {
    domain: &'a DomainObject,
    /// `None` once it is an object.
    kit: Option<Kit>,
    inner: Option<Inner>,
    place: Option<Coming<MrBody>>,
    len: u64,
    access: Access,
    context: *mut c_void,
    /// What it was made of has gone back before this goes.
    _call: Counted<'a>,
}

impl<'a> Made<'a> {
    /// Creates a region at its provider, disabled. May sleep.
    pub(super) fn new(
        domain: &'a DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
    ) -> Result<Self, Refusal> {
        let mut made = Self {
            domain,
            _call: domain.count()?,
            kit: Some(reserve::take(domain, request).unwrap_or_else(Kit::new)),
            inner: None,
            place: None,
            len: request.shape().bytes(),
            access: request.access(),
            context,
        };
        made.create(request)?;
        Ok(made)
    }

    fn create(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let domain = self.domain;
        let kit = self.kit.as_mut().ok_or(Errno::EIO)?;
        // Allocated first: nothing is left to fail once the peer can reach the memory.
        kit.complete()?;
        let most = domain.max_regions();
        let place = Coming::new_below(domain, most).map_err(|errno| match errno {
            Errno::ENOSPC => Refusal::new(errno, c"mr_cnt regions are open").value(u64::from(most)),
            other => other.into(),
        })?;
        if domain.mr_limits().refresh.is_ok() {
            kit.ranges.set(request.source())?;
        }
        let state = State::new(
            request.flags() & kfi_bindings::KFI_RMA_EVENT != 0,
            domain.has_mode(kfi_bindings::KFI_MR_ENDPOINT),
        );
        kit.create(domain, request)?;
        self.place = Some(place);
        self.inner = Some(Inner {
            state,
            mr: kit.mr.take(),
            keys: None,
            event: None,
            // From here on dropped when an error ends the registration, or by `close`.
            lease: request.take_lease(),
            awaited: false,
        });
        Ok(())
    }

    /// Begins to enable it, unless it has to be bound first, or an event queue is to tell.
    pub(super) fn begin(&mut self) -> Option<Pending> {
        let inner = self.inner.as_mut()?;
        if self.domain.eq().is_some() {
            return None;
        }
        inner.state.begin().ok()?;
        Some(inner.take_pending())
    }

    /// How that has ended.
    pub(super) fn end(&mut self, ended: Ended) -> Result<(), Refusal> {
        self.inner.as_mut().ok_or(Errno::EIO)?.end(ended)
    }

    /// The provider's part.
    pub(super) fn provided(&mut self) -> Option<&mut KBox<dyn Mr>> {
        self.inner.as_mut()?.mr.as_mut()
    }

    /// Makes the object that C gets.
    pub(super) fn open(mut self) -> Result<Opened, Refusal> {
        let all = (self.kit.take(), self.inner.take(), self.place.take());
        let (Some(kit), Some(mut inner), Some(place)) = all else {
            return Err(Errno::EIO.into());
        };
        let Kit {
            object: Some(object),
            ranges,
            reserved,
            ..
        } = kit
        else {
            return Err(Errno::EIO.into());
        };
        let eq = self.domain.eq();
        let pending = eq.is_some() && inner.state.begin().is_ok();
        let public = Public::new(self.domain, inner.keys.as_ref());
        let found = inner.keys.as_ref().map(Found::new);
        let c = public.to_c(MrObject::fid(self.context));
        let body = pin_init!(MrBody {
            eq: eq.map(NonNull::from),
            local: Local::new(self.len, self.access),
            ranges,
            reserved,
            inner <- new_mutex!(inner),
            settled <- new_condvar!(),
            work <- new_work!("kfabric::MrObject::work"),
        });
        match object.pin_init_with(Obj::new(c, body, place.take())) {
            Ok(object) => {
                let object: Arc<_> = object.into();
                object.reveal(found);
                Ok(Opened { object, pending })
            }
            Err(never) => match never {},
        }
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // The place is left first: then the region is none of the domain's any more.
        self.place = None;
        let mr = self.inner.take().and_then(|inner| inner.mr);
        if let Some(mut kit) = self.kit.take() {
            kit.mr = kit.mr.or(mr);
            reserve::put_back(self.domain, kit);
        }
    }
}

/// Returns why a region can't be had. The reason why it could not be enabled says more than that it could
/// not be closed then; but nobody has it, so nobody else tells that its memory must never be freed.
pub(super) fn not_enabled(refusal: Refusal, closed: Result<(), Refusal>) -> Refusal {
    if closed.is_ok() {
        refusal
    } else {
        refusal.with_errno(Errno::ENOTRECOVERABLE)
    }
}
