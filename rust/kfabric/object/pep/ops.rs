// SPDX-License-Identifier: GPL-2.0

//! The operations of a passive endpoint, but for those of connections.

use super::{
    PepBody,
    PepObject,
    PEP as CLASS, //
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
    kfi_ops_ep,
    kfid,
    kfid_pep, //
};

impl Object for PepBody {
    type C = kfid_pep;
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
    kfi_ops_ep: cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left
);

/// Sets how many requests may wait for an answer (`KFI_BACKLOG`). May sleep: takes a mutex.
///
/// # Safety
///
/// As the C API demands: `fid` is an open passive endpoint; `arg` is null or an `int`.
unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe {
        PepObject::call(fid, |pep| match u32::try_from(command) {
            Ok(kfi_bindings::KFI_BACKLOG) => {
                pep.set_backlog(*arg.cast::<c_int>().as_ref().ok_or(Refusal::NULL)?)
            }
            _ => Err(Refusal::new(Errno::ENOSYS, c"unknown command")),
        })
    }
}
