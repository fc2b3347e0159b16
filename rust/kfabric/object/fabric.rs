// SPDX-License-Identifier: GPL-2.0

//! Fabrics of providers written in Rust.
//!
//! Opening of fabrics of providers written in Rust: `kfi_fabric()`.

use crate::{
    object::{
        children::Children,
        closing::{
            slots,
            Close, //
        },
        domain,
        eq,
        fid::{
            Class,
            ClassTable, //
        },
        instances::Instance,
        obj::{
            Obj,
            Object, //
        },
        opening,
        pep,
        place::Parent, //
    },
    provider::{
        FabricOps,
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
    kfi_ops,
    kfi_ops_fabric,
    kfid,
    kfid_fabric, //
};

/// The class of fabrics.
static FABRIC: Class = Class::new(
    kfi_bindings::KFI_CLASS_FABRIC,
    c"not a fabric",
    c"a fabric is open",
);

/// An open fabric.
pub(crate) type FabricObject = Obj<FabricBody>;

/// The core's part of a fabric.
pub(crate) struct FabricBody {
    _instance: Instance,
    imp: KBox<dyn FabricOps>,
    provider: &'static CStr,
    name: CString,
    /// The open domains and event queues.
    children: Children,
    child_list: Arc<ChildList>,
}

impl FabricBody {
    /// Returns the provider's fabric.
    pub(crate) fn provider(&self) -> &dyn FabricOps {
        &*self.imp
    }

    /// Returns whether the fabric has this provider and name.
    pub(crate) fn is(&self, provider: &CStr, name: &CStr) -> bool {
        self.provider == provider && &*self.name == name
    }
}

impl Object for FabricBody {
    type C = kfid_fabric;
    type Place = ();
    const CLASS: &'static Class = &FABRIC;
    const OPS: kfi_ops = slots::<Self>();

    // The core replaces the table of an open fabric's fid, so the table of the fabric decides.
    unsafe fn is_of(fid: *const kfid) -> bool {
        let fabric = fid.cast::<kfid_fabric>();
        if fabric.is_null() || Errno::is_in(fabric) {
            return false;
        }
        // SAFETY: `fabric` is neither null nor an error pointer, so it is an open fabric, which points to a table.
        unsafe { ClassTable::is_of((*fabric).ops, &FABRIC) }
    }
}

impl Parent for FabricBody {
    fn children(&self) -> &Children {
        &self.children
    }

    fn child_list(&self) -> &ChildList {
        &self.child_list
    }
}

impl Close for FabricBody {
    fn close(&self) -> Result<(), Refusal> {
        self.close_to_children()
    }
}

/// Opens a fabric: the `fabric` slot of a Rust provider. May sleep.
///
/// # Safety
///
/// - `attr` is valid for the call, and its `name` is a string.
/// - `fabric` is valid for writes.
pub(crate) unsafe extern "C" fn of_provider<P: Provider>(
    attr: *mut kfi_fabric_attr,
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
        Err(refusal) => refusal.report(),
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
        _instance: Instance::new(object.as_mut_ptr().cast())?,
        imp,
        provider,
        name: CString::try_from(name)?,
        children: Children::new(),
        child_list: Arc::pin_init(ChildList::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
    };
    Ok(opening::give(object, c, body, ()))
}

/// The slots that open objects in a fabric.
static OPS: ClassTable<kfi_ops_fabric> = ClassTable::new(
    &FABRIC,
    kfi_ops_fabric {
        size: ClassTable::<kfi_ops_fabric>::SIZE,
        domain: Some(domain::open::open),
        passive_ep: Some(pep::open),
        eq_open: Some(eq::open),
        wait_open: OpsSlot::NOSYS,
    },
);
