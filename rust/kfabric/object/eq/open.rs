// SPDX-License-Identifier: GPL-2.0

//! `kfi_eq_open()`.

use super::{
    ops,
    queue::{
        Handler,
        Queue, //
    },
    EqObject, //
};
use crate::{
    object::{
        children::Children,
        fabric::{
            self,
            FabricObject, //
        },
        fid, //
    },
    support::{
        errno::Errno,
        noio::NoIo,
        num::{
            widen,
            widen_u32, //
        },
        refusal::Refusal, //
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
    types::Opaque, //
};
use kfi_bindings::{
    kfi_eq_attr,
    kfi_event_handler,
    kfid_eq,
    kfid_fabric, //
};

/// How many events a queue holds whose consumer leaves it to us.
const SIZE_DEFAULT: usize = 256;

/// How many a queue can hold: nobody has to read them, and they take some MiB.
const SIZE_MAX: usize = 1 << 13;

/// A valid `struct kfi_eq_attr`.
struct Wanted {
    size: usize,
    waits: bool,
    writable: bool,
}

fn parse(attr: &kfi_eq_attr) -> Result<Wanted, Refusal> {
    const WRITE: u64 = widen_u32(kfi_bindings::KFI_WRITE);
    let size = match attr.size {
        0 => SIZE_DEFAULT,
        size if size <= SIZE_MAX => size,
        size => {
            let refusal = Refusal::new(Errno::EINVAL, c"an event queue can't hold that many");
            return Err(refusal.value(widen(size)));
        }
    };
    if attr.flags & !WRITE != 0 {
        let refusal = Refusal::new(Errno::EBADFLAGS, c"flags of an event queue");
        return Err(refusal.value(attr.flags));
    }
    let waits = match attr.wait_obj {
        kfi_bindings::kfi_wait_obj_KFI_WAIT_NONE => false,
        kfi_bindings::kfi_wait_obj_KFI_WAIT_UNSPEC => true,
        kfi_bindings::kfi_wait_obj_KFI_WAIT_QUEUE => true,
        kfi_bindings::kfi_wait_obj_KFI_WAIT_SET => {
            return Err(Refusal::new(Errno::ENOSYS, c"there are no wait sets"));
        }
        unknown => {
            let refusal = Refusal::new(Errno::EINVAL, c"unknown wait object");
            return Err(refusal.value(u64::from(unknown)));
        }
    };
    Ok(Wanted {
        size,
        waits,
        writable: attr.flags & WRITE != 0,
    })
}

fn new(
    fabric: &FabricObject,
    attr: &kfi_eq_attr,
    handler: kfi_event_handler,
    context: *mut c_void,
) -> Result<*mut kfid_eq, Refusal> {
    let wanted = parse(attr)?;
    let mut object = KBox::<EqObject>::new_uninit(GFP_KERNEL)?;
    let eq = object.as_mut_ptr().cast::<kfid_eq>();
    let called = handler.map(|call| Handler { call, eq, context });
    let queue = Queue::new(wanted.size, called)?;
    fabric.children().add()?;
    // INVARIANT: The fabric counts this queue until `close`.
    let object = KBox::write(
        object,
        EqObject {
            c: Opaque::new(kfid_eq {
                fid: fid::new(context, &ops::FID_OPS),
                ops: ops::OPS.as_ptr(),
                event_handler: handler,
            }),
            queue,
            users: Children::new(),
            fabric: NonNull::from(fabric),
            waits: wanted.waits,
            writable: wanted.writable,
        },
    );
    Ok(KBox::into_raw(object).cast())
}

/// The `eq_open` slot of a fabric. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid, and the handler may be called until the
/// queue is closed.
pub(crate) unsafe extern "C" fn open(
    fabric: *mut kfid_fabric,
    attr: *mut kfi_eq_attr,
    eq: *mut *mut kfid_eq,
    handler: kfi_event_handler,
    context: *mut c_void,
) -> c_int {
    if eq.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    let _noio = NoIo::enter();
    // SAFETY: Each is null or valid as the C API demands.
    let (fabric, attr) = unsafe {
        *eq = ptr::null_mut();
        (fabric::object(fabric), attr.as_ref())
    };
    let opened = fabric.and_then(|fabric| {
        let attr = attr.ok_or(Refusal::new(Errno::EINVAL, c"attr is NULL"))?;
        new(fabric, attr, handler, context)
    });
    match opened {
        Ok(opened) => {
            // SAFETY: As above.
            unsafe { *eq = opened };
            0
        }
        Err(refusal) => refusal.report(),
    }
}
