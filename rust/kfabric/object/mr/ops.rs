// SPDX-License-Identifier: GPL-2.0

//! The operations of a region.

use super::{
    bind::bind,
    close::close,
    control::control,
    MR, //
};
use crate::{
    object::fid::ClassTable,
    support::table::Slot, //
};
use kfi_bindings::kfi_ops;

/// What every object has.
pub(super) static FID_OPS: ClassTable<kfi_ops> = ClassTable::new(
    &MR,
    kfi_ops {
        size: ClassTable::<kfi_ops>::SIZE,
        close: Some(close),
        bind: Some(bind),
        control: Some(control),
        ops_open: Slot::NOSYS,
    },
);
