// SPDX-License-Identifier: GPL-2.0

//! Fabrics of providers written in Rust.

pub(crate) mod open;
mod ops;

use super::{
    children::Children,
    fid::{
        Class,
        ClassTable, //
    }, //
};
use crate::{
    provider::Fabric,
    support::{
        errno::Errno,
        noio::NoIo,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    types::Opaque, //
};
use kfi_bindings::{
    kfid,
    kfid_fabric, //
};

/// The class of fabrics.
static FABRIC: Class = Class::new(kfi_bindings::KFI_CLASS_FABRIC);

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
    // By the fabric's own table: the fid's is the guard's while the fabric is open.
    // SAFETY: `fabric` is null or open, and then points to a table.
    if fabric.is_null() || !unsafe { ClassTable::is_of((*fabric).ops, &FABRIC) } {
        return Err(Refusal::new(Errno::EINVAL, c"not a fabric"));
    }
    // SAFETY: It is the first field of an object.
    Ok(unsafe { &*fabric.cast::<FabricObject>() })
}
