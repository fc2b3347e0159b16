// SPDX-License-Identifier: GPL-2.0

//! The operations of an endpoint, but for those that connect it and transfer something.
//!
//! What is served by nobody yet has a table all the same, for callers who don't look before they call.

use super::{
    left,
    setopt,
    target::Target,
    EndpointBody,
    EndpointObject,
    EP as CLASS, //
};
use crate::{
    object::{
        binding::bind,
        closing::slots,
        fid::Class,
        obj::Object,
        place::Place, //
    },
    provider::cq::Context,
    support::{
        errno::Errno,
        num::signed_size,
        refusal::Refusal,
        table::{
            unserved,
            OpsSlot,
            Table, //
        }, //
    }, //
};
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_ops,
    kfi_ops_ep,
    kfi_ops_tagged,
    kfid,
    kfid_ep, //
};

impl Object for EndpointBody {
    type C = kfid_ep;
    type Place = Place<Self>;
    const CLASS: &'static Class = &CLASS;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        control: Some(control),
        ..slots::<Self>()
    };
}

/// Options and contexts.
pub(super) static EP: Table<kfi_ops_ep> = Table(kfi_ops_ep {
    size: size_of::<kfi_ops_ep>(),
    cancel: Some(cancel),
    getopt: Some(setopt::getopt),
    setopt: Some(setopt::setopt),
    tx_ctx: OpsSlot::NOSYS,
    rx_ctx: OpsSlot::NOSYS,
    rx_size_left: Some(left::rx),
    tx_size_left: Some(left::tx),
});

/// Tagged messages.
pub(super) static TAGGED: Table<kfi_ops_tagged> = unserved!(
    kfi_ops_tagged: recv, recvv, recvbv, recvmsg, send, sendv, sendbv, sendmsg, inject, senddata,
    injectdata, recvsgl, sendsgl
);

/// `kfi_control()` of an endpoint: `kfi_enable()` is all it knows. May sleep.
///
/// # Safety
///
/// As the C API demands: `fid` is an open endpoint of this core.
pub(super) unsafe extern "C" fn control(
    fid: *mut kfid,
    command: c_int,
    _arg: *mut c_void,
) -> c_int {
    if u32::try_from(command) != Ok(kfi_bindings::KFI_ENABLE) {
        return Refusal::new(Errno::ENOSYS, c"unknown command").report();
    }
    // SAFETY: By the requirements of this function.
    unsafe { EndpointObject::call(fid, |endpoint| endpoint.enable()) }
}

/// `kfi_cancel()`. Any context.
///
/// # Safety
///
/// As the C API demands: `fid` is an open endpoint of this core, or a receive context; `context` is anything.
unsafe extern "C" fn cancel(fid: *mut kfid, context: *mut c_void) -> isize {
    // SAFETY: By the requirements of this function.
    let target = unsafe { Target::find(fid) };
    let cancelled = target.and_then(|target| target.cancel(Context::new(context)));
    signed_size(cancelled.map_or_else(Refusal::report, |()| 0))
}
