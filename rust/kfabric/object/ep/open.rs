// SPDX-License-Identifier: GPL-2.0

//! `kfi_endpoint()`.

use super::{
    attr,
    ops,
    EndpointObject, //
};
use crate::{
    object::{
        domain::{
            self,
            DomainObject, //
        },
        fid, //
    },
    provider::ep::Endpoint,
    support::{
        errno::Errno,
        noio::NoIo,
        refusal::Refusal, //
    }, //
};
use core::ptr;
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
    kfid_domain,
    kfid_ep, //
};

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
                fid: fid::new(context, &ops::FID_OPS),
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
