// SPDX-License-Identifier: GPL-2.0

//! The operations of an endpoint, of which those that transfer are served by nobody yet.
//!
//! Their tables are there, and full, for callers who don't look before they call.

use super::{
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
    support::{
        errno::Errno,
        refusal::Refusal,
        table::{
            unserved,
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
    kfi_ops_atomic,
    kfi_ops_cm,
    kfi_ops_ep,
    kfi_ops_msg,
    kfi_ops_rma,
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
pub(super) static EP: Table<kfi_ops_ep> = unserved!(
    kfi_ops_ep: cancel, getopt, setopt, tx_ctx, rx_ctx
);

/// Connections.
pub(super) static CM: Table<kfi_ops_cm> = unserved!(
    kfi_ops_cm: setname, getname, getpeer, connect, listen, accept, reject, shutdown, join
);

/// Messages.
pub(super) static MSG: Table<kfi_ops_msg> = unserved!(
    kfi_ops_msg: recv, recvv, recvbv, recvmsg, send, sendv, sendbv, sendmsg, inject, senddata,
    injectdata, recvsgl, sendsgl
);

/// RMA.
pub(super) static RMA: Table<kfi_ops_rma> = unserved!(
    kfi_ops_rma: read, readv, readbv, readmsg, write, writev, writebv, writemsg, inject, writedata,
    injectdata, readsgl, writesgl
);

/// Tagged messages.
pub(super) static TAGGED: Table<kfi_ops_tagged> = unserved!(
    kfi_ops_tagged: recv, recvv, recvbv, recvmsg, send, sendv, sendbv, sendmsg, inject, senddata,
    injectdata, recvsgl, sendsgl
);

/// Atomic operations.
pub(super) static ATOMIC: Table<kfi_ops_atomic> = unserved!(
    kfi_ops_atomic: write, writev, writemsg, inject, readwrite, readwritev, readwritemsg, compwrite,
    compwritev, compwritemsg, writevalid, readwritevalid, compwritevalid
);

/// `kfi_control()` of an endpoint: `kfi_enable()` is all it knows. Any context.
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
    match unsafe { EndpointObject::from_fid(fid) }
        .and_then(|object| Ok(object.endpoint().enable()?))
    {
        Ok(()) => 0,
        Err(refusal) => refusal.report(),
    }
}
