// SPDX-License-Identifier: GPL-2.0

//! The operations of a domain, and what is opened in one.

use super::{
    atomic,
    control::control,
    DomainBody,
    DOMAIN, //
};
use crate::{
    object::{
        binding::bind,
        closing::slots,
        cntr,
        cq,
        ep,
        ext,
        fid::Class,
        mr::reg::{
            reg,
            regattr,
            regbv,
            regsgl,
            regv, //
        },
        obj::Object,
        place::Place, //
    },
    support::table::{
        OpsSlot,
        Table, //
    }, //
};
use kfi_bindings::{
    kfi_ops,
    kfi_ops_domain,
    kfi_ops_mr,
    kfid_domain, //
};

impl Object for DomainBody {
    type C = kfid_domain;
    type Place = Place<Self>;
    const CLASS: &'static Class = &DOMAIN;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        control: Some(control),
        ops_open: Some(ext::open),
        ..slots::<Self>()
    };
}

/// What is opened in a domain.
pub(super) static OPS: Table<kfi_ops_domain> = Table(kfi_ops_domain {
    size: size_of::<kfi_ops_domain>(),
    av_open: OpsSlot::NOSYS,
    cq_open: Some(cq::open),
    endpoint: Some(ep::open::open),
    scalable_ep: OpsSlot::NOSYS,
    cntr_open: Some(cntr::open),
    poll_open: OpsSlot::NOSYS,
    stx_ctx: OpsSlot::NOSYS,
    srx_ctx: Some(ep::open::open_srx),
    query_atomic: Some(atomic::query),
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
