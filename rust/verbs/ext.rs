// SPDX-License-Identifier: GPL-2.0

//! The extension `verbs_dom_ops_v1`: what lies beneath a domain, for C consumers.
//!
//! C header: [`include/kfi_verbs_ext.h`](srctree/include/kfi_verbs_ext.h)

use crate::{
    device,
    domain::Domain,
    prelude::*,
    removal::PdHolder,
    removal_callbacks::OnRemoval, //
};
use kfabric::{
    Extension,
    ExtensionTable, //
};
use kfi_bindings::{
    kfi_verbs_dom_ops,
    kfid,
    kfid_mr, //
};

/// A table that is never written.
#[repr(transparent)]
struct Table(kfi_verbs_dom_ops);

// SAFETY: It is never written, and its functions may be called from any thread.
unsafe impl Sync for Table {}

// SAFETY: It is a `struct kfi_verbs_dom_ops` with functions that do what the header says.
unsafe impl ExtensionTable for Table {
    const NAME: &'static CStr = num::c_str(kfi_bindings::KFI_VERBS_DOM_OPS_1);
}

static TABLE: Table = Table(kfi_verbs_dom_ops {
    get_ib_device: Some(get_ib_device),
    get_pd: Some(kfi_bindings::kfi_verbs_helper_get_pd),
    on_removal: Some(on_removal),
    get_lkey: Some(get_lkey),
});

/// The extensions of each domain.
pub(crate) static EXTENSIONS: [Extension; 1] = [Extension::new(&TABLE)];

/// Returns the domain of a fid.
///
/// # Safety
///
/// `fid` must be null or an open object.
unsafe fn domain<'a>(fid: *mut kfid) -> Option<&'a Domain> {
    // SAFETY: `fid` is null or an open object by the function's contract.
    unsafe { kfabric::domain::from_fid(fid) }
}

/// Implements `get_ib_device`. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn get_ib_device(fid: *mut kfid) -> *mut kfi_bindings::ib_device {
    // SAFETY: `fid` is null or an open object by the contract of the C API.
    let device = unsafe { domain(fid) }.and_then(|domain| domain.link.device());
    device.map_or(ptr::null_mut(), |device| device.as_raw().cast())
}

/// Implements `get_pd`, with the name of the calling function. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call. `caller` is a string.
#[no_mangle]
unsafe extern "C" fn kfi_verbs_get_pd(
    fid: *mut kfid,
    caller: *const c_char,
) -> *mut kfi_bindings::ib_pd {
    // SAFETY: `fid` is null or an open object by the contract of the C API.
    let Some(domain) = (unsafe { domain(fid) }) else {
        return ptr::null_mut();
    };
    match domain.link.gate.enter() {
        Some(inside) => {
            // SAFETY: `caller` is a C string by the function's contract.
            let caller = unsafe { CStr::from_char_ptr(caller) };
            domain.link.pd_taken(PdHolder::new(caller));
            inside.get().sharing.set_shared();
            inside.get().pd.as_raw().cast()
        }
        None => ptr::null_mut(),
    }
}

const _: () = {
    let _ = if true {
        kfi_bindings::kfi_verbs_get_pd
    } else {
        kfi_verbs_get_pd
    };
};

/// Implements `on_removal`. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn on_removal(
    fid: *mut kfid,
    cb: Option<unsafe extern "C" fn(*mut c_void)>,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: `fid` is null or an open object by the contract of the C API.
    let Some(domain) = (unsafe { domain(fid) }) else {
        return Refusal::new(Errno::EINVAL, c"not a domain of this provider").report(c"on_removal");
    };
    let callbacks = &domain.link.callbacks;
    let done = match cb {
        Some(cb) => {
            // SAFETY: The consumer passed `cb` and `arg`, and permits the call by the contract of
            // the C API.
            let callback = unsafe { OnRemoval::new(cb, arg) };
            callbacks.add(callback).map_err(|errno| {
                let why = match errno {
                    Errno::EBUSY => c"there is a callback with this argument",
                    Errno::ENODEV => c"the device is gone, or going",
                    _ => c"no memory for a callback",
                };
                Refusal::new(errno, why)
            })
        }
        None => callbacks
            .remove(arg, device::in_callback())
            .map_err(|errno| {
                Refusal::new(errno, c"taken back in a removal callback, while it runs")
            }),
    };
    // SAFETY: `fid` is an open object by the contract of the C API.
    unsafe { kfabric::domain::answer(fid, c"on_removal", done) }
}

/// Implements `get_lkey`. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn get_lkey(mr: *mut kfid_mr) -> u32 {
    // SAFETY: `mr` is null or an open region by the contract of the C API.
    let domain: Option<&Domain> = unsafe { kfabric::mr::domain_of(mr) };
    match domain {
        // SAFETY: An open region, so that it has a descriptor: the key itself.
        Some(_) => u32::try_from(unsafe { (*mr).mem_desc }.addr()).unwrap_or(0),
        None => 0,
    }
}
