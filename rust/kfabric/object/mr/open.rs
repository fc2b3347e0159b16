// SPDX-License-Identifier: GPL-2.0

//! Making the region that C gets.

use super::{
    enable,
    kit::Kit,
    ops,
    public_key,
    reserve,
    state::State,
    Inner,
    MrObject, //
};
use crate::{
    object::{
        domain::DomainObject,
        fid, //
    },
    region::request::MrRequest,
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    ffi::c_void,
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    sync::Arc,
    types::Opaque, //
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
    let _call = domain.add_child()?;
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
    let child = domain.add_region()?;
    if domain.mr_limits().refresh.is_ok() {
        kit.ranges.set(request.source())?;
    }
    let mut state = State::new(
        request.flags() & kfi_bindings::KFI_RMA_EVENT != 0,
        domain.has_mode(kfi_bindings::KFI_MR_ENDPOINT),
    );
    let eq = domain.eq();
    let mr = kit.create(domain, request)?;
    // From here on dropped when an error ends the registration, or by `close`.
    let lease = request.take_lease();
    let begun = enable::begin(mr, &mut state, eq.is_some())
        .map_err(|refusal| not_enabled(refusal, mr.close()))?;
    let (desc, key, iova) = match &begun {
        Some(keys) => (keys.desc, public_key(domain, keys), keys.base),
        None => (0, widen(kfi_bindings::KFI_KEY_NOTAVAIL), 0),
    };
    let pending = state.is_pending();
    let Kit {
        object,
        mr,
        ranges,
        reserved,
    } = mem::replace(kit, Kit::new());
    let object = object.ok_or(Errno::EIO)?;
    // INVARIANT: `child` keeps the domain open and is given up by `close` only.
    let object = object.pin_init_with(pin_init!(MrObject {
        c: Opaque::new(kfid_mr {
            fid: fid::new(context, &ops::FID_OPS),
            mem_desc: ptr::without_provenance_mut(desc),
            key,
            iova,
        }),
        domain: child.keep(),
        eq: eq.map(NonNull::from),
        access: request.access(),
        len: request.shape().bytes(),
        ranges,
        reserved,
        inner <- new_mutex!(Inner { state, mr, keys: begun, event: None, lease }),
        settled <- new_condvar!(),
        work <- new_work!("kfabric::MrObject::work"),
    }));
    match object {
        Ok(object) => Ok(Opened {
            object: object.into(),
            pending,
        }),
        Err(never) => match never {},
    }
}

/// Why a region can't be had. The reason why it could not be enabled says more than that it could
/// not be closed then; but nobody has it, so nobody else tells that its memory must never be freed.
fn not_enabled(refusal: Refusal, closed: Result<(), Refusal>) -> Refusal {
    match closed {
        Ok(()) => refusal,
        Err(_) => refusal.with_errno(Errno::ENOTRECOVERABLE),
    }
}
