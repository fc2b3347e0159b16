// SPDX-License-Identifier: GPL-2.0

//! The operations of an endpoint, none of which anything serves yet.
//!
//! The tables are there, and full, for callers who don't look before they call.

use crate::table::{
    unserved,
    Table, //
};
use kfi_bindings::{
    kfi_ops_atomic,
    kfi_ops_cm,
    kfi_ops_ep,
    kfi_ops_msg,
    kfi_ops_rma,
    kfi_ops_tagged, //
};

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
