// SPDX-License-Identifier: GPL-2.0

//! The operations of a domain.

use super::{
    bind::bind,
    close,
    control::control,
    DOMAIN, //
};
use crate::{
    object::{
        cntr,
        ep,
        ext,
        fid::ClassTable,
        mr::reg::{
            reg,
            regattr,
            regbv,
            regsgl,
            regv, //
        }, //
    },
    support::table::{
        Slot,
        Table, //
    }, //
};
use kfi_bindings::{
    kfi_ops,
    kfi_ops_domain,
    kfi_ops_mr, //
};

/// What is opened in a domain.
pub(super) static OPS: Table<kfi_ops_domain> = Table(kfi_ops_domain {
    size: size_of::<kfi_ops_domain>(),
    av_open: Slot::NOSYS,
    cq_open: Slot::NOSYS,
    endpoint: Some(ep::open::open),
    scalable_ep: Slot::NOSYS,
    cntr_open: Some(cntr::open::open),
    poll_open: Slot::NOSYS,
    stx_ctx: Slot::NOSYS,
    srx_ctx: Slot::NOSYS,
    query_atomic: Slot::NOSYS,
});

/// Registration.
pub(super) static MR: Table<kfi_ops_mr> = Table(kfi_ops_mr {
    size: size_of::<kfi_ops_mr>(),
    reg: Some(reg),
    regv: Some(regv),
    regbv: Some(regbv),
    regattr: Some(regattr),
    regsgl: Some(regsgl),
});

/// What every object has.
pub(super) static FID_OPS: ClassTable<kfi_ops> = ClassTable::new(
    &DOMAIN,
    kfi_ops {
        size: ClassTable::<kfi_ops>::SIZE,
        close: Some(close),
        bind: Some(bind),
        control: Some(control),
        ops_open: Some(ext::open),
    },
);
