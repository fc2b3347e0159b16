// SPDX-License-Identifier: GPL-2.0

//! The memory region as C has it.

use crate::{
    domain::DomainObject,
    fid,
    noio::NoIo,
    provider::{
        Domain,
        Mr, //
    },
    refusal::Refusal,
    request::MrRequest,
    table::{
        no_op3,
        no_op5,
        Table, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*, //
};
use kfi_bindings::{
    kfi_ops,
    kfid,
    kfid_mr, //
};

/// A `struct kfid_mr` and what the core keeps with it.
///
/// # Invariants
///
/// `c.fid` is what C points to; `domain` stays open, since it counts this region as a child.
#[repr(C)]
struct MrObject {
    c: kfid_mr,
    mr: KBox<dyn Mr>,
    domain: NonNull<DomainObject>,
}

static FID_OPS: Table<kfi_ops> = Table(kfi_ops {
    size: size_of::<kfi_ops>(),
    close: Some(close),
    bind: Some(no_op3),
    control: Some(no_op3),
    ops_open: Some(no_op5),
});

/// Registers a valid request and makes the object that C gets.
pub(crate) fn open(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
) -> Result<*mut kfid_mr, Refusal> {
    // Allocated first: nothing is left to fail once the peer can reach the memory.
    let object = KBox::new_uninit(GFP_KERNEL)?;
    let child = domain.add_region()?;
    let registered = domain.provider().register(request)?;
    // INVARIANT: `child` keeps the domain open and is given up by `close` only.
    let object = KBox::write(
        object,
        MrObject {
            c: kfid_mr {
                fid: fid::new(kfi_bindings::KFI_CLASS_MR, context, &FID_OPS),
                mem_desc: ptr::without_provenance_mut(registered.desc),
                key: registered.key,
                iova: registered.base,
            },
            mr: registered.mr,
            domain: child.keep(),
        },
    );
    // C reaches the object by its first field until `close`.
    Ok(KBox::into_raw(object).cast())
}

/// `kfi_close` of a region. May sleep; when it returns 0, no peer can reach the memory.
///
/// # Safety
///
/// `fid` is a region of this core that is used by nobody else any more.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is the first field of the object that `register` gave out.
    let object = unsafe { KBox::from_raw(fid.cast::<MrObject>()) };
    let MrObject {
        c: _,
        mut mr,
        domain,
    } = KBox::into_inner(object);
    let closed = mr.close();
    drop(mr);
    // SAFETY: By the invariant of the object, which counted as a child of the domain until here.
    unsafe { domain.as_ref() }.remove_region();
    closed.map_or_else(Refusal::report, |()| 0)
}

/// The provider's domain that a region was registered in, if it is one of type `D`. For a
/// provider's extensions.
///
/// # Safety
///
/// `mr` is null or an open region; the reference is not used after it was closed.
pub unsafe fn domain_of<'a, D: Domain>(mr: *mut kfid_mr) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let c = unsafe { mr.as_ref() }?;
    if !ptr::eq(c.fid.ops, FID_OPS.as_ptr()) {
        return None;
    }
    // SAFETY: The table tells that this is the first field of one of our objects, whose domain is
    // open by its invariant.
    let domain = unsafe { (*mr.cast::<MrObject>()).domain.as_ref() };
    domain.provider().as_any().downcast_ref()
}
