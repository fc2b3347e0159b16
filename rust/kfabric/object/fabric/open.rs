// SPDX-License-Identifier: GPL-2.0

//! `kfi_fabric()` for providers written in Rust.
//!
//! What is opened in a fabric.

use super::{
    FabricBody,
    FabricObject,
    FABRIC, //
};
use crate::{
    object::{
        children::Children,
        domain,
        eq,
        fid::ClassTable,
        instances::Instance,
        opening,
        pep, //
    },
    provider::{
        Fabric,
        Provider, //
    },
    support::{
        child_list::ChildList,
        errno::Errno,
        refusal::Refusal,
        table::OpsSlot, //
    }, //
};
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
    sync::Arc, //
};
use kfi_bindings::{
    kfi_fabric_attr,
    kfi_ops_fabric,
    kfid_fabric, //
};

/// The `kfabric` slot of a Rust provider. May sleep.
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
    let mut object = KBox::<FabricObject>::new_uninit(GFP_KERNEL)?;
    let c = kfid_fabric {
        fid: FabricObject::fid(context),
        ops: OPS.as_ptr(),
        api_version,
    };
    let body = FabricBody {
        _instance: Instance::new(object.as_mut_ptr().cast())?,
        imp,
        provider,
        name: CString::try_from(name)?,
        children: Children::new(),
        child_list: Arc::pin_init(ChildList::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
    };
    Ok(opening::give(object, c, body, ()))
}

/// What is opened in a fabric.
pub(super) static OPS: ClassTable<kfi_ops_fabric> = ClassTable::new(
    &FABRIC,
    kfi_ops_fabric {
        size: ClassTable::<kfi_ops_fabric>::SIZE,
        domain: Some(domain::open::open),
        passive_ep: Some(pep::open),
        eq_open: Some(eq::open),
        wait_open: OpsSlot::NOSYS,
    },
);
