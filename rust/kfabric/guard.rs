// SPDX-License-Identifier: GPL-2.0

//! `kfi_fabric()`, and the guard that pins the provider of an open fabric.

use crate::{
    errno::Errno,
    noio::NoIo,
    refusal::Refusal,
    registry::{
        self,
        ProviderRef, //
    }, //
};
use core::ptr;
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr, //
};
use kfi_bindings::{
    kfi_fabric_attr,
    kfi_ops,
    kfid,
    kfid_fabric, //
};

/// Stands between a consumer and an open fabric, whichever language its provider is written in.
///
/// The fabric's fid points to `ops` instead of the provider's table. So the code that runs last
/// when a fabric is closed is the core's, and the provider's module can be let go by it.
///
/// # Invariants
///
/// `inner` is the table that the provider gave the fabric.
#[repr(C)]
struct Guard {
    ops: kfi_ops,
    inner: *mut kfi_ops,
    provider: ProviderRef,
}

impl Guard {
    /// The guard of an open fabric, and its fid's own table.
    ///
    /// # Safety
    ///
    /// `fid` is a fabric that `kfi_fabric()` gave out.
    unsafe fn of(fid: *mut kfid) -> *mut Self {
        // SAFETY: `ops` is the first field of the guard that `kfi_fabric()` put there.
        unsafe { (*fid).ops }.cast()
    }
}

/// Forwards a slot of a fabric's fid to the provider's table.
macro_rules! forward {
    ($guard:expr, $slot:ident($($arg:expr),*)) => {{
        // SAFETY: The guard is valid, and so is the provider's table, while the fabric is open.
        // The arguments are passed on as they came.
        unsafe {
            match (*(*$guard).inner).$slot {
                Some(op) => op($($arg),*),
                None => crate::table::NO_SUCH_CALL.report(),
            }
        }
    }};
}

/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_close(fid: *mut kfid) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    let ret = forward!(guard, close(fid));
    if ret == 0 {
        // The fabric is gone, and nothing of the provider runs any more on its behalf.
        // SAFETY: `kfi_fabric()` made the guard as a box and nobody else has it.
        drop(unsafe { KBox::from_raw(guard) });
    }
    ret
}

/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_bind(fid: *mut kfid, other: *mut kfid, flags: u64) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, bind(fid, other, flags))
}

/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, control(fid, command, arg))
}

/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_ops_open(
    fid: *mut kfid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, ops_open(fid, name, flags, ops, context))
}

/// Opens a fabric of the provider that the attributes name, and puts a guard in front.
fn open(attr: &kfi_fabric_attr, context: *mut c_void) -> Result<*mut kfid_fabric, Refusal> {
    if attr.prov_name.is_null() || attr.name.is_null() {
        return Err(Refusal::new(Errno::EINVAL, c"no provider or fabric name"));
    }
    // SAFETY: Not null, so a string, as the C API demands.
    let name = unsafe { CStr::from_char_ptr(attr.prov_name) };
    let provider =
        registry::find(name).ok_or(Refusal::new(Errno::ENODEV, c"no provider of that name"))?;
    let kfabric = provider.kfabric().ok_or(Errno::ENOSYS)?;
    let guard = KBox::<Guard>::new_uninit(GFP_KERNEL)?;

    let mut fabric: *mut kfid_fabric = ptr::null_mut();
    // SAFETY: The provider is held, the attributes are valid for the call. Providers take them
    // without const, but do not change them.
    let ret = unsafe { kfabric(ptr::from_ref(attr).cast_mut(), &mut fabric, context) };
    if ret != 0 {
        return Err(Refusal::new(
            Errno::from_c(ret),
            c"the provider refused the fabric",
        ));
    }
    let Some(opened) = ptr::NonNull::new(fabric) else {
        return Err(Refusal::new(Errno::EIO, c"the provider gave no fabric"));
    };
    // SAFETY: A provider gives a valid fabric when it succeeds, and nobody else has it yet.
    let fid = unsafe { &mut (*opened.as_ptr()).fid };
    if fid.ops.is_null() {
        return Err(Refusal::new(
            Errno::EIO,
            c"the provider's fabric has no operations",
        ));
    }
    let guard = KBox::write(
        guard,
        Guard {
            ops: kfi_ops {
                size: size_of::<kfi_ops>(),
                close: Some(guard_close),
                bind: Some(guard_bind),
                control: Some(guard_control),
                ops_open: Some(guard_ops_open),
            },
            // INVARIANT: This is the provider's table.
            inner: fid.ops,
            provider,
        },
    );
    fid.ops = KBox::into_raw(guard).cast();
    Ok(opened.as_ptr())
}

/// `kfi_fabric()`. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_fabric(
    attr: *mut kfi_fabric_attr,
    fabric: *mut *mut kfid_fabric,
    context: *mut c_void,
) -> c_int {
    let _noio = NoIo::enter();
    if fabric.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    // SAFETY: Not null, so valid.
    let attr = unsafe {
        *fabric = ptr::null_mut();
        attr.as_ref()
    };
    match attr
        .ok_or(Refusal::new(Errno::EINVAL, c"attr is NULL"))
        .and_then(|attr| open(attr, context))
    {
        Ok(opened) => {
            // SAFETY: As above.
            unsafe { *fabric = opened };
            0
        }
        Err(refusal) => refusal.report(),
    }
}

crate::table::declared_in_c!(kfi_fabric);
