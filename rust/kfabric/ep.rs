// SPDX-License-Identifier: GPL-2.0

//! The endpoint as C has it: `kfi_endpoint()`, and what can be done with what it opens.
//!
//! The core's own, on the domains of providers that say so ([`Domain::endpoints`]). Nothing is
//! transferred by it: it is there for regions to be bound to.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

mod attr;
mod ops;

use crate::{
    domain::{
        self,
        DomainObject, //
    },
    endpoint::Endpoint,
    errno::Errno,
    fid,
    noio::NoIo,
    provider::Domain,
    refusal::Refusal,
    table::{
        Slot,
        Table, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use kfi_bindings::{
    kfi_info,
    kfi_ops,
    kfid,
    kfid_domain,
    kfid_ep, //
};

/// A `struct kfid_ep` and what the core keeps with it.
///
/// # Invariants
///
/// `c.fid` is what C points to; `domain` stays open, since it counts this endpoint as a child.
#[repr(C)]
pub(crate) struct EndpointObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_ep>,
    endpoint: Arc<Endpoint>,
    domain: NonNull<DomainObject>,
}

impl EndpointObject {
    /// What regions are bound to.
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// The domain that it was opened in.
    pub(crate) fn domain(&self) -> &DomainObject {
        // SAFETY: Open by the invariant.
        unsafe { self.domain.as_ref() }
    }
}

static FID_OPS: Table<kfi_ops> = Table(kfi_ops {
    size: size_of::<kfi_ops>(),
    close: Some(close),
    bind: Some(bind),
    control: Some(control),
    ops_open: Slot::NOSYS,
});

fn new(
    domain: &DomainObject,
    info: *const kfi_info,
    context: *mut c_void,
) -> Result<*mut kfid_ep, Refusal> {
    if !domain.provider().endpoints() {
        return Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider has no endpoints",
        ));
    }
    // SAFETY: As the C API demands, null or valid for the call with all that it points to.
    let info = unsafe { info.as_ref() }.ok_or(Refusal::new(Errno::EINVAL, c"info is NULL"))?;
    let auth_key = attr::parse(domain, info)?;
    let object = KBox::new_uninit(GFP_KERNEL)?;
    let endpoint = Arc::pin_init(Endpoint::new(auth_key), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let child = domain.add_child()?;
    // INVARIANT: `child` keeps the domain open and is given up by `close` only.
    let object = KBox::write(
        object,
        EndpointObject {
            c: Opaque::new(kfid_ep {
                fid: fid::new(kfi_bindings::KFI_CLASS_EP, context, &FID_OPS),
                ops: ops::EP.as_ptr(),
                cm: ops::CM.as_ptr(),
                msg: ops::MSG.as_ptr(),
                rma: ops::RMA.as_ptr(),
                tagged: ops::TAGGED.as_ptr(),
                atomic: ops::ATOMIC.as_ptr(),
            }),
            endpoint,
            domain: child.keep(),
        },
    );
    Ok(KBox::into_raw(object).cast())
}

/// The `endpoint` slot of a domain. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    info: *mut kfi_info,
    ep: *mut *mut kfid_ep,
    context: *mut c_void,
) -> c_int {
    if ep.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    let _noio = NoIo::enter();
    // SAFETY: Each is null or valid as the C API demands; a domain begins with its fid.
    let domain = unsafe {
        *ep = ptr::null_mut();
        domain::object(domain.cast())
    };
    match domain.and_then(|domain| new(domain, info, context)) {
        Ok(opened) => {
            // SAFETY: As above.
            unsafe { *ep = opened };
            0
        }
        Err(refusal) => refusal.report(),
    }
}

/// `kfi_ep_bind()`: without transfers there is nothing to report to anybody.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn bind(_fid: *mut kfid, other: *mut kfid, _flags: u64) -> c_int {
    match other.is_null() {
        true => Refusal::new(Errno::EINVAL, c"nothing to bind").report(),
        false => Refusal::new(Errno::ENOSYS, c"endpoints transfer nothing").report(),
    }
}

/// `kfi_control()` of an endpoint: `kfi_enable()` is all it knows. Any context.
///
/// # Safety
///
/// As the C API demands: `fid` is an open endpoint of this core.
unsafe extern "C" fn control(fid: *mut kfid, command: c_int, _arg: *mut c_void) -> c_int {
    if u32::try_from(command) != Ok(kfi_bindings::KFI_ENABLE) {
        return Refusal::new(Errno::ENOSYS, c"unknown command").report();
    }
    // SAFETY: By the requirements of this function.
    match unsafe { object(fid) }.and_then(|object| Ok(object.endpoint.enable()?)) {
        Ok(()) => 0,
        Err(refusal) => refusal.report(),
    }
}

/// Closes an endpoint: no peer gets through it to its regions any more. Sleeps until those who are
/// on their way have come back.
///
/// # Safety
///
/// `fid` is an open endpoint of this core that is used by nobody else any more.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    // SAFETY: `fid` is the first field of the object that `open` gave out.
    let object = unsafe { KBox::from_raw(fid.cast::<EndpointObject>()) };
    object.endpoint.close();
    let domain = object.domain;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the domain until here.
    unsafe { domain.as_ref() }.remove_child();
    0
}

/// The endpoint behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a EndpointObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::has_ops(fid, &FID_OPS) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<EndpointObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not an endpoint")),
    }
}

/// The endpoint behind a fid, if it is one of the core's. For a provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object.
pub unsafe fn from_fid(fid: *mut kfid) -> Option<Arc<Endpoint>> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { object(fid) }.ok()?;
    Some(object.endpoint().clone())
}

/// The provider's domain that an endpoint was opened in, if it is one of type `D`. For a
/// provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub unsafe fn domain_of<'a, D: Domain>(fid: *mut kfid) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { object(fid) }.ok()?;
    object.domain().provider().as_any().downcast_ref()
}
