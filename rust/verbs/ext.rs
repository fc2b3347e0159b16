// SPDX-License-Identifier: GPL-2.0

//! The extension `verbs_dom_ops_v1`: what lies beneath a domain, for C consumers.
//!
//! C header: [`include/kfi_verbs_ext.h`](srctree/include/kfi_verbs_ext.h)

use crate::{
    callbacks::Callback,
    domain::Domain, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_ulong,
        c_void, //
    },
    prelude::*, //
};
use kfabric::{
    Errno,
    NoIo, //
};
use kfi_bindings::{
    kfi_verbs_dom_ops,
    kfid,
    kfid_mr, //
};

/// By what name consumers open it.
pub(crate) const NAME: &CStr = c"verbs_dom_ops_v1";

/// A table that is never written.
struct Table(kfi_verbs_dom_ops);

// SAFETY: It is never written, and its functions may be called from any thread.
unsafe impl Sync for Table {}

static TABLE: Table = Table(kfi_verbs_dom_ops {
    get_ib_device: Some(get_ib_device),
    get_pd: Some(kfi_bindings::kfi_verbs_helper_get_pd),
    on_removal: Some(on_removal),
    get_lkey: Some(get_lkey),
});

/// The table in C's layout.
pub(crate) fn table() -> NonNull<c_void> {
    NonNull::from(&TABLE.0).cast()
}

/// A C callback.
#[derive(Clone, Copy)]
pub(crate) struct Removal {
    cb: unsafe extern "C" fn(*mut c_void),
    arg: *mut c_void,
}

// SAFETY: The contract of `on_removal` is that the callback is called from any process context.
unsafe impl Send for Removal {}

impl Callback for Removal {
    fn call(self) {
        // SAFETY: The consumer promised so when it registered the callback.
        unsafe { (self.cb)(self.arg) };
    }

    fn is_same(&self, other: &Self) -> bool {
        self.arg == other.arg
    }
}

/// The domain behind a fid.
///
/// # Safety
///
/// As the C API demands: `fid` is null or an open object.
unsafe fn domain<'a>(fid: *mut kfid) -> Option<&'a Domain> {
    // SAFETY: By the requirements of this function.
    unsafe { kfabric::domain::from_fid(fid) }
}

/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn get_ib_device(fid: *mut kfid) -> *mut kfi_bindings::ib_device {
    // SAFETY: As the C API demands.
    let device = unsafe { domain(fid) }.and_then(|domain| domain.link().device());
    device.map_or(ptr::null_mut(), |device| device.as_raw().cast())
}

/// The slot `get_pd`, with the address that it was called from. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
#[no_mangle]
unsafe extern "C" fn kfi_verbs_get_pd(fid: *mut kfid, caller: c_ulong) -> *mut kfi_bindings::ib_pd {
    // SAFETY: As the C API demands.
    let Some(domain) = (unsafe { domain(fid) }) else {
        return ptr::null_mut();
    };
    let inside = domain.link().gate().enter();
    match inside.as_ref().map(|inside| inside.get()) {
        Some(resources) => {
            domain.link().pd_taken(Holder(caller));
            resources.pd().as_raw().cast()
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

/// Who took a protection domain: an address in their code.
#[derive(Clone, Copy)]
pub(crate) struct Holder(c_ulong);

impl Holder {
    /// Says something in the log that ends with who it is. Any context.
    pub(crate) fn warn(self, device: &rdma::Device, what: &CStr) {
        let name = device.name();
        // SAFETY: Both are strings; the address is only looked up.
        unsafe {
            kfi_bindings::kfi_verbs_helper_warn(
                name.as_c_str().as_char_ptr(),
                what.as_char_ptr(),
                self.0,
            )
        };
    }
}

/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn on_removal(
    fid: *mut kfid,
    cb: Option<unsafe extern "C" fn(*mut c_void)>,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: As the C API demands.
    let Some(domain) = (unsafe { domain(fid) }) else {
        return Errno::EINVAL.to_c();
    };
    let callbacks = domain.link().callbacks();
    // Removal waits for the lock.
    let _noio = NoIo::enter();
    match cb {
        Some(cb) => callbacks
            .add(Removal { cb, arg })
            .map_or_else(Errno::to_c, |()| 0),
        None => {
            let cb = nothing;
            callbacks.remove(Removal { cb, arg });
            0
        }
    }
}

/// Stands for the callback that is taken back, which is known by its argument.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn nothing(_arg: *mut c_void) {}

/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn get_lkey(mr: *mut kfid_mr) -> u32 {
    // SAFETY: As the C API demands.
    let domain: Option<&Domain> = unsafe { kfabric::mr::domain_of(mr) };
    match domain {
        // SAFETY: An open region, so that it has a descriptor: the key itself.
        Some(_) => u32::try_from(unsafe { (*mr).mem_desc }.addr()).unwrap_or(0),
        None => 0,
    }
}
