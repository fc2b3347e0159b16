// SPDX-License-Identifier: GPL-2.0

//! Atomic operations on a peer's memory: the calls of `struct kfi_ops_atomic`.
//!
//! All of them are for any context. Operands are copied when they are posted, so their memory may be
//! any, and what a call says of its descriptors doesn't matter; nor does the peer's address, which is
//! that of the connection.

mod calls;
mod msgs;
mod request;
mod valid;

use crate::support::table::Table;
use kfi_bindings::kfi_ops_atomic;

/// Atomic operations.
pub(super) static ATOMIC: Table<kfi_ops_atomic> = Table(kfi_ops_atomic {
    size: size_of::<kfi_ops_atomic>(),
    write: Some(calls::write),
    writev: Some(calls::writev),
    writemsg: Some(msgs::write),
    inject: Some(calls::inject),
    readwrite: Some(calls::fetch),
    readwritev: Some(calls::fetchv),
    readwritemsg: Some(msgs::fetch),
    compwrite: Some(calls::compare),
    compwritev: Some(calls::comparev),
    compwritemsg: Some(msgs::compare),
    writevalid: Some(valid::write),
    readwritevalid: Some(valid::fetch),
    compwritevalid: Some(valid::compare),
});
