// SPDX-License-Identifier: GPL-2.0

//! Opening of fabrics of providers written in Rust: `kfi_fabric()`.
//!
//! The table of a fabric opens the objects in it, so this is above them; they are above the fabric.

use super::{
    FabricBody,
    FabricObject,
    FABRIC, //
};
use crate::{
    object::{
        domain,
        eq,
        instances::Instance,
        pep,
        prelude::*, //
    },
    provider::Provider, //
};

/// Opens a fabric: the `fabric` slot of a Rust provider. May sleep.
///
/// # Safety
///
/// - `attr` is valid for the call, and its `name` is a string.
/// - `fabric` is valid for writes.
pub(crate) unsafe extern "C" fn of_provider<P: Provider>(
    attr: *mut c::kfi_fabric_attr,
    fabric: *mut *mut kfid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `attr` is valid for the call, and `name` is a string.
    let (name, api_version) = unsafe { (CStr::from_char_ptr((*attr).name), (*attr).api_version) };
    let opened = P::open_fabric(name).and_then(|imp| new(imp, P::NAME, name, api_version, context));
    match opened {
        Ok(opened) => {
            // SAFETY: `fabric` is valid for writes.
            unsafe { *fabric = opened };
            0
        }
        Err(refusal) => refusal.report_of(c"kfi_fabric", P::NAME),
    }
}

/// Creates the object for C. The function is not generic, so that the tables are in the core's module. May sleep.
fn new(
    imp: KBox<dyn FabricOps>,
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
        instance: Instance::new(object.as_mut_ptr().cast())?,
        imp,
        provider,
        name: CString::try_from(name)?,
        children: Children::new(),
        child_list: Arc::pin_init(ChildList::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
    };
    Ok(opening::give(object, c, body, ()))
}

/// The slots that open objects in a fabric.
static OPS: ClassTable<c::kfi_ops_fabric> = ClassTable::new(
    &FABRIC,
    c::kfi_ops_fabric {
        size: ClassTable::<c::kfi_ops_fabric>::SIZE,
        domain: Some(domain::open::open),
        passive_ep: Some(pep::open),
        eq_open: Some(eq::open),
        wait_open: nosys!(FabricBody, wait_open),
    },
);
