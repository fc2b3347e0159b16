// SPDX-License-Identifier: GPL-2.0

//! The memory region as C has it.
//!
//! Lock order: a region's lock is taken before anything of its provider.

mod control;
mod ranges;

use self::ranges::Ranges;
use crate::{
    access::Access,
    domain::DomainObject,
    errno::Errno,
    fid,
    noio::NoIo,
    num::widen,
    provider::{
        Bindings,
        Domain,
        Keys,
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
    new_mutex,
    prelude::*,
    sync::Mutex,
    types::Opaque, //
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
#[pin_data]
pub(crate) struct MrObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_mr>,
    domain: NonNull<DomainObject>,
    access: Access,
    ranges: Ranges,
    #[pin]
    inner: Mutex<Inner>,
}

/// What changes in a region's life.
struct Inner {
    mr: KBox<dyn Mr>,
    /// How peers reach it.
    #[expect(dead_code, reason = "until there are raw keys")]
    keys: Keys,
}

impl MrObject {
    /// The domain that it was registered in.
    pub(crate) fn domain(&self) -> &DomainObject {
        // SAFETY: Open by the invariant.
        unsafe { self.domain.as_ref() }
    }
}

static FID_OPS: Table<kfi_ops> = Table(kfi_ops {
    size: size_of::<kfi_ops>(),
    close: Some(close),
    bind: Some(no_op3),
    control: Some(control::control),
    ops_open: Some(no_op5),
});

/// Registers a valid request and makes the object that C gets. Sleeps until the device is done.
pub(crate) fn open(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
) -> Result<*mut kfid_mr, Refusal> {
    // Allocated first: nothing is left to fail once the peer can reach the memory.
    let object = KBox::<MrObject>::new_uninit(GFP_KERNEL)?;
    let child = domain.add_region()?;
    let ranges = match domain.mr_limits().refresh {
        true => Ranges::of(request.source())?,
        false => Ranges::Unknown,
    };
    let mut mr = domain.provider().create_mr(request)?;
    let keys = mr.enable(&Bindings::default()).inspect_err(|_| {
        // The call has failed already, for a reason that says more.
        let _ = mr.close();
    })?;
    let key = match domain.has_mode(kfi_bindings::KFI_MR_RAW) {
        true => widen(kfi_bindings::KFI_KEY_NOTAVAIL),
        false => keys.key,
    };
    // INVARIANT: `child` keeps the domain open and is given up by `close` only.
    let object = object.write_pin_init(pin_init!(MrObject {
        c: Opaque::new(kfid_mr {
            fid: fid::new(kfi_bindings::KFI_CLASS_MR, context, &FID_OPS),
            mem_desc: ptr::without_provenance_mut(keys.desc),
            key,
            iova: keys.base,
        }),
        domain: child.keep(),
        access: request.access(),
        ranges,
        inner <- new_mutex!(Inner { mr, keys }),
    }));
    let object = match object {
        Ok(object) => object,
        Err(never) => match never {},
    };
    // C reaches the object by its first field until `close`, and doesn't move it.
    // SAFETY: As said.
    let object = unsafe { Pin::into_inner_unchecked(object) };
    Ok(KBox::into_raw(object).cast())
}

/// `kfi_close` of a region. May sleep; when it returns 0, no peer can reach the memory.
///
/// # Safety
///
/// `fid` is a region of this core that is used by nobody else any more.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is the first field of the object that `open` gave out, pinned.
    let object = unsafe { Pin::new_unchecked(KBox::from_raw(fid.cast::<MrObject>())) };
    let closed = object.inner.lock().mr.close();
    let domain = object.domain;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the domain until here.
    unsafe { domain.as_ref() }.remove_region();
    match closed {
        Ok(()) => 0,
        // Whatever the provider says: the object is gone, which `EBUSY` would deny.
        Err(refusal) => refusal.with_errno(Errno::EIO).report(),
    }
}

/// The region behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a MrObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::has_ops(fid, &FID_OPS) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<MrObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not a memory region")),
    }
}

/// The provider's domain that a region was registered in, if it is one of type `D`. For a
/// provider's extensions.
///
/// # Safety
///
/// `mr` is null or an open region; the reference is not used after it was closed.
pub unsafe fn domain_of<'a, D: Domain>(mr: *mut kfid_mr) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { object(mr.cast()) }.ok()?;
    object.domain().provider().as_any().downcast_ref()
}
