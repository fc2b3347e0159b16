// SPDX-License-Identifier: GPL-2.0

//! Fabrics of providers written in Rust.

use crate::{
    children::Children,
    domain,
    eq,
    errno::Errno,
    fid,
    noio::NoIo,
    provider::{
        Fabric,
        Provider, //
    },
    refusal::Refusal,
    table::{
        no_op3,
        no_op4,
        no_op5,
        Table, //
    }, //
};
use core::ptr;
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    types::Opaque, //
};
use kfi_bindings::{
    kfi_fabric_attr,
    kfi_ops,
    kfi_ops_fabric,
    kfid,
    kfid_fabric, //
};

/// A fabric of a provider written in Rust.
///
/// # Invariants
///
/// `c.fid` is what C points to. `children` counts the open domains and event
/// queues.
#[repr(C)]
pub(crate) struct FabricObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_fabric>,
    imp: KBox<dyn Fabric>,
    provider: &'static CStr,
    name: CString,
    children: Children,
}

impl FabricObject {
    pub(crate) fn provider(&self) -> &dyn Fabric {
        &*self.imp
    }

    /// The fabric as C has it.
    pub(crate) fn as_ptr(&self) -> *mut kfid_fabric {
        self.c.get()
    }

    /// Is it this provider's fabric of this name?
    pub(crate) fn is(&self, provider: &CStr, name: &CStr) -> bool {
        self.provider == provider && &*self.name == name
    }

    pub(crate) fn children(&self) -> &Children {
        &self.children
    }
}

static OPS: Table<kfi_ops_fabric> = Table(kfi_ops_fabric {
    size: size_of::<kfi_ops_fabric>(),
    domain: Some(domain::open),
    passive_ep: Some(no_op4),
    eq_open: Some(eq::open),
    wait_open: Some(no_op3),
});

static FID_OPS: Table<kfi_ops> = Table(kfi_ops {
    size: size_of::<kfi_ops>(),
    close: Some(close),
    bind: Some(no_op3),
    control: Some(no_op3),
    ops_open: Some(no_op5),
});

/// The `kfabric` slot of a Rust provider.
///
/// # Safety
///
/// Called by `kfi_fabric()` only, with both pointers valid and the names in `attr` not null.
pub(crate) unsafe extern "C" fn of_provider<P: Provider>(
    attr: *mut kfi_fabric_attr,
    fabric: *mut *mut kfid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the requirements of this function.
    let (name, api_version) = unsafe { (CStr::from_char_ptr((*attr).name), (*attr).api_version) };
    let opened = P::open_fabric(name).and_then(|imp| new(imp, P::NAME, name, api_version, context));
    match opened {
        Ok(opened) => {
            // SAFETY: By the requirements of this function.
            unsafe { *fabric = opened };
            0
        }
        Err(refusal) => refusal.report(),
    }
}

/// Makes the object that C gets. Not generic, so that its tables are the core's.
fn new(
    imp: KBox<dyn Fabric>,
    provider: &'static CStr,
    name: &CStr,
    api_version: u32,
    context: *mut c_void,
) -> Result<*mut kfid_fabric, Refusal> {
    let object = KBox::new(
        FabricObject {
            c: Opaque::new(kfid_fabric {
                fid: fid::new(kfi_bindings::KFI_CLASS_FABRIC, context, &FID_OPS),
                ops: OPS.as_ptr(),
                api_version,
            }),
            imp,
            provider,
            name: CString::try_from(name)?,
            children: Children::new(),
        },
        GFP_KERNEL,
    )?;
    Ok(KBox::into_raw(object).cast())
}

/// Closes a fabric; `EBUSY` while domains or event queues are open. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let object = fid.cast::<FabricObject>();
    let _noio = NoIo::enter();
    // SAFETY: C calls this on an open fabric, whose fid is the object's first field.
    if let Err(errno) = unsafe { &(*object).children }.close() {
        return Refusal::new(errno, c"fabric has open domains or event queues").report();
    }
    // SAFETY: As above; without children nobody uses it any more.
    drop(unsafe { KBox::from_raw(object) });
    0
}

/// The fabric behind a C pointer.
///
/// # Safety
///
/// `fabric` is null or an open fabric; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fabric: *mut kfid_fabric) -> Result<&'a FabricObject, Refusal> {
    // The ops table tells our fabrics from those of C providers.
    // SAFETY: By the requirements of this function.
    if fabric.is_null() || !ptr::eq(unsafe { (*fabric).ops }, OPS.as_ptr()) {
        return Err(Refusal::new(Errno::EINVAL, c"not a fabric"));
    }
    // SAFETY: It is the first field of an object.
    Ok(unsafe { &*fabric.cast::<FabricObject>() })
}
