// SPDX-License-Identifier: GPL-2.0

//! `kfi_eq_open()`.

use super::{
    ops,
    queue::{
        Handler,
        Queue, //
    },
    EqBody,
    EqObject, //
};
use crate::{
    object::{
        children::Children,
        opening,
        queues::can_wait, //
    },
    support::{
        c_ref::parse_attr,
        errno::Errno,
        num::{
            widen,
            widen_u32, //
        },
        refusal::Refusal, //
    }, //
};
use kernel::ffi::{
    c_int,
    c_void, //
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
const SIZE_MAX: usize = 1 << 16;

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
    Ok(Wanted {
        size,
        waits: can_wait(attr.wait_obj)?,
        writable: attr.flags & WRITE != 0,
    })
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
    // SAFETY: Each is null or valid as the C API demands; a fabric begins with its fid.
    unsafe {
        opening::open(fabric.cast(), eq, |_, eq| {
            let wanted = parse_attr(attr, parse)?;
            let called = handler.map(|call| Handler { call, eq, context });
            let c = kfid_eq {
                fid: EqObject::fid(context),
                ops: ops::OPS.as_ptr(),
                event_handler: handler,
            };
            let body = EqBody {
                queue: Queue::new(wanted.size, called)?,
                waiters: Children::new(),
                waits: wanted.waits,
                writable: wanted.writable,
            };
            Ok((c, body))
        })
    }
}
