// SPDX-License-Identifier: GPL-2.0

//! Making the region that C gets.

use super::{
    enable,
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
        descs::Local,
        domain::DomainObject,
        obj::Obj,
        place::Coming, //
    },
    region::request::MrRequest,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::{
    mem,
    ptr::NonNull, //
};
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
    // Until what was not used has gone back.
    let _call = domain.count()?;
    let mut kit = reserve::take(domain, request).unwrap_or_else(Kit::new);
    let opened = register(domain, request, context, &mut kit);
    if opened.is_err() {
        reserve::put_back(domain, kit);
    }
    opened
}

/// Registers a request by what `kit` has, and takes that; or leaves it as it was.
fn register(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
    kit: &mut Kit,
) -> Result<Opened, Refusal> {
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
    let eq = domain.eq();
    kit.create(domain, request)?;
    let mut inner = Inner {
        state,
        mr: kit.mr.take(),
        keys: None,
        event: None,
        // From here on dropped when an error ends the registration, or by `close`.
        lease: request.take_lease(),
    };
    let bound = !inner.state.is_unbound();
    let pending = bound && eq.is_some();
    if pending {
        inner.state.begin()?;
    } else if bound {
        if let Err(refusal) = enable::enable_now(&mut inner) {
            let closed = inner.mr.as_mut().map_or(Ok(()), |mr| mr.close());
            kit.mr = inner.mr;
            return Err(not_enabled(refusal, closed));
        }
    }
    let public = Public::new(domain, inner.keys.as_ref());
    let found = inner.keys.as_ref().map(Found::new);
    let Kit {
        object,
        ranges,
        reserved,
        ..
    } = mem::replace(kit, Kit::new());
    let object = object.ok_or(Errno::EIO)?;
    let c = public.to_c(MrObject::fid(context));
    let body = pin_init!(MrBody {
        eq: eq.map(NonNull::from),
        local: Local::new(request.shape().bytes(), request.access()),
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

/// Returns why a region can't be had. The reason why it could not be enabled says more than that it could
/// not be closed then; but nobody has it, so nobody else tells that its memory must never be freed.
fn not_enabled(refusal: Refusal, closed: Result<(), Refusal>) -> Refusal {
    if closed.is_ok() {
        refusal
    } else {
        refusal.with_errno(Errno::ENOTRECOVERABLE)
    }
}
