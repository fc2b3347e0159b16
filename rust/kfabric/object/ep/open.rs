// SPDX-License-Identifier: GPL-2.0

//! `kfi_endpoint()`.

use super::{
    attr,
    ops,
    EndpointBody,
    EndpointObject, //
};
use crate::{
    object::{
        domain::DomainObject,
        opening, //
    },
    provider::ep::Endpoint,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_info,
    kfid_domain,
    kfid_ep, //
};

/// What there is to a new endpoint of a domain.
///
/// # Safety
///
/// As the C API demands: `info` is null or valid for the call, with all that it points to.
unsafe fn make(
    domain: &DomainObject,
    info: *const kfi_info,
    context: *mut c_void,
) -> Result<(kfid_ep, EndpointBody), Refusal> {
    if !domain.provider().endpoints() {
        return Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider has no endpoints",
        ));
    }
    // SAFETY: By the requirements of this function.
    let info = unsafe { info.as_ref() }.ok_or(Refusal::new(Errno::EINVAL, c"info is NULL"))?;
    let auth_key = attr::parse(domain, info)?;
    let endpoint = Arc::pin_init(Endpoint::new(auth_key), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let c = kfid_ep {
        fid: EndpointObject::fid(context),
        ops: ops::EP.as_ptr(),
        cm: ops::CM.as_ptr(),
        msg: ops::MSG.as_ptr(),
        rma: ops::RMA.as_ptr(),
        tagged: ops::TAGGED.as_ptr(),
        atomic: ops::ATOMIC.as_ptr(),
    };
    Ok((c, EndpointBody { endpoint }))
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
    // SAFETY: Each is null or valid as the C API demands; a domain begins with its fid.
    unsafe { opening::open(domain.cast(), ep, |domain, _| make(domain, info, context)) }
}
