// SPDX-License-Identifier: GPL-2.0

//! The operations of an endpoint, of which those that transfer are served by nobody yet.
//!
//! Their tables are there, and full, for callers who don't look before they call.

use super::{
    close,
    object,
    EP as CLASS, //
};
use crate::{
    object::fid::ClassTable,
    support::{
        errno::Errno,
        refusal::Refusal,
        table::{
            unserved,
            Slot,
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
    kfid, //
};

/// What every object has.
pub(super) static FID_OPS: ClassTable<kfi_ops> = ClassTable::new(
    &CLASS,
    kfi_ops {
        size: ClassTable::<kfi_ops>::SIZE,
        close: Some(close),
        bind: Some(bind),
        control: Some(control),
        ops_open: Slot::NOSYS,
    },
);

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

/// `kfi_ep_bind()`: without transfers there is nothing to report to anybody. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn bind(_fid: *mut kfid, other: *mut kfid, _flags: u64) -> c_int {
    match other.is_null() {
        true => Refusal::new(Errno::EINVAL, c"nothing to bind").report(),
        false => Refusal::new(Errno::ENOSYS, c"endpoints transfer nothing").report(),
    }
}

/// `kfi_control()` of an endpoint: `kfi_enable()` is all it knows. Any context.
///
/// # Safety
///
/// As the C API demands: `fid` is an open endpoint of this core.
unsafe extern "C" fn control(fid: *mut kfid, command: c_int, _arg: *mut c_void) -> c_int {
    if u32::try_from(command) != Ok(kfi_bindings::KFI_ENABLE) {
        return Refusal::new(Errno::ENOSYS, c"unknown command").report();
    }
    // SAFETY: By the requirements of this function.
    match unsafe { object(fid) }.and_then(|object| Ok(object.endpoint().enable()?)) {
        Ok(()) => 0,
        Err(refusal) => refusal.report(),
    }
}
