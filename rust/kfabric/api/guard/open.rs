// SPDX-License-Identifier: GPL-2.0

//! `kfi_fabric()`.

use super::{
    ops,
    Consumers,
    Guard,
    HANDED_OUT, //
};
use crate::{
    api::registry,
    object::instances,
    support::{
        c_ref::c_ref,
        errno::Errno,
        hlist::Node,
        refusal::Refusal,
        task::NoIo, //
    }, //
};
use core::ptr;
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr,
    sync::GlobalLockedBy, //
};
use kfi_bindings::{
    kfi_fabric_attr,
    kfid,
    kfid_fabric, //
};

/// Opens a fabric of the provider that the attributes name, and puts a guard in front.
fn open(attr: &kfi_fabric_attr, context: *mut c_void) -> Result<*mut kfid_fabric, Refusal> {
    if attr.prov_name.is_null() || attr.name.is_null() {
        return Err(Refusal::new(Errno::EINVAL, c"no provider or fabric name"));
    }
    if attr.api_version > crate::support::strings::API_VERSION {
        let refusal = Refusal::new(Errno::ENOSYS, c"version newer than this one");
        return Err(refusal.value(u64::from(attr.api_version)));
    }
    // SAFETY: Not null, so a string, as the C API demands.
    let name = unsafe { CStr::from_char_ptr(attr.prov_name) };
    let provider =
        registry::find(name).ok_or(Refusal::new(Errno::ENODEV, c"no provider of that name"))?;
    if attr.prov_version > provider.version() {
        let refusal = Refusal::new(Errno::ENODATA, c"the provider is older than prov_version");
        return Err(refusal.value(u64::from(provider.version())));
    }
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
    let fid = opened.as_ptr().cast::<kfid>();
    let mut lock = HANDED_OUT.lock();
    // SAFETY: A provider gives a valid fabric when it succeeds.
    let inner = unsafe { (*fid).ops };
    if inner.is_null() {
        return Err(Refusal::new(
            Errno::EIO,
            c"the provider's fabric has no operations",
        ));
    }
    // SAFETY: `fid` is the fabric that the provider has just opened, and has a table.
    match unsafe { Guard::find(fid) } {
        None => {
            // INVARIANT: This is what the provider gave, and the guard is put there below.
            let guard = KBox::write(
                guard,
                Guard {
                    table: ops::table(),
                    inner,
                    fabric: fid,
                    provider,
                    consumers: GlobalLockedBy::new(Consumers {
                        open: 1,
                        closing: 0,
                    }),
                    node: Node::new(),
                },
            );
            let guard = KBox::into_raw(guard);
            // SAFETY: The guard was just made, and is freed after it was unlinked; the head is a static, and the
            // lock is held. `fid` is the fabric that the provider has just opened; nobody else has it, or it would
            // have a guard.
            unsafe {
                (*guard).node.link(&lock);
                (*fid).ops = guard.cast();
            }
        }
        Some(guard) => {
            // SAFETY: A guard that a fid points to is there while the lock is held.
            let guard = unsafe { guard.as_ref() };
            if !guard.provider.is(&provider) {
                return Err(Refusal::new(
                    Errno::EIO,
                    c"the provider gave another provider's fabric",
                ));
            }
            guard.add(&mut lock);
        }
    }
    drop(lock);
    // SAFETY: `fid` is the fabric, which is open, and nobody can close it before this returns.
    unsafe { instances::show(fid) };
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
    // SAFETY: `fabric` is not null, so valid. `attr` is null, an error pointer, or valid, as the C API demands.
    let attr = unsafe {
        *fabric = ptr::null_mut();
        c_ref(attr)
    };
    match attr
        .ok_or(Refusal::new(
            Errno::EINVAL,
            c"attr is NULL or an error pointer",
        ))
        .and_then(|attr| open(attr, context))
    {
        Ok(opened) => {
            // SAFETY: `fabric` isn't null, and valid for writing as the C API demands.
            unsafe { *fabric = opened };
            0
        }
        Err(refusal) => refusal.report(),
    }
}

crate::support::table::declared_in_c!(kfi_fabric);
