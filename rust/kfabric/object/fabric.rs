// SPDX-License-Identifier: GPL-2.0

//! Fabrics of providers written in Rust.

pub(crate) mod open;

use super::{
    children::Children,
    closing::{
        slots,
        Close, //
    },
    fid::{
        Class,
        ClassTable, //
    },
    instances::Instance,
    obj::{
        Obj,
        Object, //
    },
    place::Parent, //
};
use crate::{
    provider::Fabric,
    support::{
        child_list::ChildList, //
        errno::Errno,
        refusal::Refusal,
    }, //
};
use kernel::{
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::Arc, //
};
use kfi_bindings::{
    kfi_ops,
    kfid,
    kfid_fabric, //
};

/// The class of fabrics.
static FABRIC: Class = Class::new(
    kfi_bindings::KFI_CLASS_FABRIC,
    c"not a fabric",
    c"a fabric is open",
);

/// A fabric of a provider written in Rust.
pub(crate) type FabricObject = Obj<FabricBody>;

/// What the core keeps with a fabric.
pub(crate) struct FabricBody {
    _instance: Instance,
    imp: KBox<dyn Fabric>,
    provider: &'static CStr,
    name: CString,
    /// The open domains and event queues.
    children: Children,
    child_list: Arc<ChildList>,
}

impl FabricBody {
    pub(crate) fn provider(&self) -> &dyn Fabric {
        &*self.imp
    }

    /// Is it this provider's fabric of this name?
    pub(crate) fn is(&self, provider: &CStr, name: &CStr) -> bool {
        self.provider == provider && &*self.name == name
    }
}

impl Object for FabricBody {
    type C = kfid_fabric;
    type Place = ();
    const CLASS: &'static Class = &FABRIC;
    const OPS: kfi_ops = slots::<Self>();

    // By the fabric's own table: the fid's is the guard's while the fabric is open.
    unsafe fn is_of(fid: *const kfid) -> bool {
        let fabric = fid.cast::<kfid_fabric>();
        if fabric.is_null() || Errno::is_in(fabric) {
            return false;
        }
        // SAFETY: `fabric` is neither null nor an error pointer, so an object that C takes for a fabric,
        // which points to a table.
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
