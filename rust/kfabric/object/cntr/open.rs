// SPDX-License-Identifier: GPL-2.0

//! `kfi_cntr_open()`.

use super::{
    ops,
    CounterBody,
    CounterObject, //
};
use crate::{
    object::{
        opening,
        queues::can_wait, //
    },
    provider::cntr::Counter,
    support::{
        c_ref::parse_attr,
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_cntr_attr,
    kfi_cntr_events_KFI_CNTR_EVENTS_COMP as EVENTS_COMP,
    kfid_cntr,
    kfid_domain, //
};

/// Checks what the consumer asks for; says whether it is going to wait.
fn parse(attr: &kfi_cntr_attr) -> Result<bool, Refusal> {
    if attr.events != EVENTS_COMP {
        let refusal = Refusal::new(Errno::EINVAL, c"unknown events to count");
        return Err(refusal.value(u64::from(attr.events)));
    }
    if attr.flags != 0 {
        return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(attr.flags));
    }
    can_wait(attr.wait_obj)
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
    // SAFETY: Each is null or valid as the C API demands; a domain begins with its fid.
    unsafe {
        opening::open(domain.cast(), cntr, |_, _| {
            let can_wait = parse_attr(attr, parse)?;
            let counter = Arc::pin_init(Counter::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
            let c = kfid_cntr {
                fid: CounterObject::fid(context),
                ops: ops::OPS.as_ptr(),
            };
            Ok((c, CounterBody { counter, can_wait }))
        })
    }
}
