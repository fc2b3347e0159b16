// SPDX-License-Identifier: GPL-2.0

//! The counter as C has it: `kfi_cntr_open()`, and what can be done with what it opens.
//!
//! The core's own, on the domains of every provider written in Rust.
//!
//! C header: [`include/kfi_eq.h`](srctree/include/kfi_eq.h)

mod ops;

use crate::{
    counter::Counter,
    domain::{
        self,
        DomainObject, //
    },
    errno::Errno,
    fid,
    noio::NoIo,
    refusal::Refusal,
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
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use kfi_bindings::{
    kfi_cntr_attr,
    kfi_cntr_events_KFI_CNTR_EVENTS_COMP as EVENTS_COMP,
    kfi_ops,
    kfi_wait_obj_KFI_WAIT_NONE as WAIT_NONE,
    kfi_wait_obj_KFI_WAIT_QUEUE as WAIT_QUEUE,
    kfi_wait_obj_KFI_WAIT_SET as WAIT_SET,
    kfi_wait_obj_KFI_WAIT_UNSPEC as WAIT_UNSPEC,
    kfid,
    kfid_cntr,
    kfid_domain, //
};

/// A `struct kfid_cntr` and what the core keeps with it.
///
/// # Invariants
///
/// `c.fid` is what C points to; `domain` stays open, since it counts this counter as a child.
#[repr(C)]
pub(crate) struct CounterObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_cntr>,
    counter: Arc<Counter>,
    can_wait: bool,
    domain: NonNull<DomainObject>,
}

impl CounterObject {
    /// What it counts with; whoever keeps it counts in vain once the object is closed.
    pub(crate) fn counter(&self) -> &Arc<Counter> {
        &self.counter
    }

    /// The domain that it was opened in.
    pub(crate) fn domain(&self) -> &DomainObject {
        // SAFETY: Open by the invariant.
        unsafe { self.domain.as_ref() }
    }
}

static FID_OPS: Table<kfi_ops> = Table(kfi_ops {
    size: size_of::<kfi_ops>(),
    close: Some(close),
    bind: Some(no_op3),
    control: Some(no_op3),
    ops_open: Some(no_op5),
});

/// Checks what the consumer asks for; says whether it is going to wait.
fn parse(attr: &kfi_cntr_attr) -> Result<bool, Refusal> {
    if attr.events != EVENTS_COMP {
        let refusal = Refusal::new(Errno::EINVAL, c"unknown events to count");
        return Err(refusal.value(u64::from(attr.events)));
    }
    if attr.flags != 0 {
        return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(attr.flags));
    }
    match attr.wait_obj {
        WAIT_NONE => Ok(false),
        WAIT_UNSPEC | WAIT_QUEUE => Ok(true),
        WAIT_SET => Err(Refusal::new(Errno::ENOSYS, c"there are no wait sets")),
        other => Err(Refusal::new(Errno::EINVAL, c"unknown wait object").value(u64::from(other))),
    }
}

fn new(
    domain: &DomainObject,
    attr: &kfi_cntr_attr,
    context: *mut c_void,
) -> Result<*mut kfid_cntr, Refusal> {
    let can_wait = parse(attr)?;
    let object = KBox::new_uninit(GFP_KERNEL)?;
    let counter = Arc::pin_init(Counter::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let child = domain.add_child()?;
    // INVARIANT: `child` keeps the domain open and is given up by `close` only.
    let object = KBox::write(
        object,
        CounterObject {
            c: Opaque::new(kfid_cntr {
                fid: fid::new(kfi_bindings::KFI_CLASS_CNTR, context, &FID_OPS),
                ops: ops::OPS.as_ptr(),
            }),
            counter,
            can_wait,
            domain: child.keep(),
        },
    );
    Ok(KBox::into_raw(object).cast())
}

/// The `cntr_open` slot of a domain. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    attr: *mut kfi_cntr_attr,
    cntr: *mut *mut kfid_cntr,
    context: *mut c_void,
) -> c_int {
    if cntr.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    let _noio = NoIo::enter();
    // SAFETY: Each is null or valid as the C API demands; a domain begins with its fid.
    let (domain, attr) = unsafe {
        *cntr = ptr::null_mut();
        (domain::object(domain.cast()), attr.as_ref())
    };
    let opened = domain.and_then(|domain| {
        let attr = attr.ok_or(Refusal::new(Errno::EINVAL, c"attr is NULL"))?;
        new(domain, attr, context)
    });
    match opened {
        Ok(opened) => {
            // SAFETY: As above.
            unsafe { *cntr = opened };
            0
        }
        Err(refusal) => refusal.report(),
    }
}

/// Closes a counter; `EBUSY` while somebody waits for it. Regions that it is bound to go on without
/// it. Any context.
///
/// # Safety
///
/// `fid` is an open counter of this core.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let object = fid.cast::<CounterObject>();
    // SAFETY: `fid` is the first field of the object that `open` gave out.
    if let Err(errno) = unsafe { &(*object).counter }.close() {
        return Refusal::new(errno, c"somebody waits for the counter").report();
    }
    // SAFETY: As above; it is closed, so C does not use it any more.
    let object = unsafe { KBox::from_raw(object) };
    let domain = object.domain;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the domain until here.
    unsafe { domain.as_ref() }.remove_child();
    0
}

/// The counter behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a CounterObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::has_ops(fid, &FID_OPS) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<CounterObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not a counter")),
    }
}
