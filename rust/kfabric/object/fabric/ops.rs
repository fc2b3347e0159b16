// SPDX-License-Identifier: GPL-2.0

//! What is opened in a fabric.

use super::FABRIC;
use crate::{
    object::{
        domain,
        eq,
        fid::ClassTable,
        pep, //
    },
    support::table::OpsSlot, //
};
use kfi_bindings::kfi_ops_fabric;

/// What is opened in a fabric.
pub(super) static OPS: ClassTable<kfi_ops_fabric> = ClassTable::new(
    &FABRIC,
    kfi_ops_fabric {
        size: ClassTable::<kfi_ops_fabric>::SIZE,
        domain: Some(domain::open::open),
        passive_ep: Some(pep::open::open),
        eq_open: Some(eq::open),
        wait_open: OpsSlot::NOSYS,
    },
);
