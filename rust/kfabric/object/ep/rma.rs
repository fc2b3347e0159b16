// SPDX-License-Identifier: GPL-2.0

//! Access to a peer's memory: the calls of `struct kfi_ops_rma`.
//!
//! All of them are for any context. The peer is that of the connection; what a call says of its address
//! doesn't matter.

mod access;
mod reads;
mod writes;

use crate::support::table::Table;
use kfi_bindings::kfi_ops_rma;

/// RMA.
pub(super) static RMA: Table<kfi_ops_rma> = Table(kfi_ops_rma {
    size: size_of::<kfi_ops_rma>(),
    read: Some(reads::read),
    readv: Some(reads::readv),
    readbv: Some(reads::readbv),
    readmsg: Some(reads::readmsg),
    write: Some(writes::write),
    writev: Some(writes::writev),
    writebv: Some(writes::writebv),
    writemsg: Some(writes::writemsg),
    inject: Some(writes::inject),
    writedata: Some(writes::writedata),
    injectdata: Some(writes::injectdata),
    readsgl: Some(reads::readsgl),
    writesgl: Some(writes::writesgl),
});
