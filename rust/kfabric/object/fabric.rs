// SPDX-License-Identifier: GPL-2.0

//! Fabrics of providers written in Rust.

pub(crate) mod open;

use super::{
    counters::DomainCounters,
    instances::Instance,
    prelude::*,
    queues::Words, //
};

/// The class of fabrics.
static FABRIC: Class = Class::new(c::KFI_CLASS_FABRIC, c"not a fabric", c"a fabric is open");

/// An open fabric.
pub(crate) type FabricObject = Obj<FabricBody>;

/// The core's part of a fabric.
pub(crate) struct FabricBody {
    pub(super) instance: Instance,
    imp: KBox<dyn FabricOps>,
    pub(super) provider: &'static CStr,
    pub(super) name: CString,
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

    fn number(object: &FabricObject) -> u64 {
        object.instance.number()
    }

    fn locate<'a>(
        object: &'a FabricObject,
        about: &mut c::kfi_helper_object,
    ) -> Option<&'a DomainCounters> {
        about.provider = object.provider.as_char_ptr();
        None
    }

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

impl Words for FabricBody {
    fn words(&self, prov_errno: c_int) -> Option<&'static CStr> {
        self.provider().words(prov_errno)
    }
}

impl Close for FabricBody {
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        object.close_to_children()
    }
}
