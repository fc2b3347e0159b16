// SPDX-License-Identifier: GPL-2.0

//! The operations of a region.

use super::{
    close::{
        close,
        end, //
    },
    control::control,
    prelude::*,
    MR, //
};
use crate::object::domain::DomainBody;

impl Object for MrBody {
    type C = kfid_mr;
    type Place = Place<Self>;
    const CLASS: &'static Class = &MR;
    const OPS: kfi_ops = kfi_ops {
        size: ClassTable::<kfi_ops>::SIZE,
        close: Some(close),
        bind: Some(bind::<Self>),
        control: Some(control),
        ops_open: OpsSlot::NOSYS,
    };
}

impl Child for MrBody {
    type Parent = DomainBody;
    const SHARE: Share = Share::LIMITED;
    const END: Option<fn(&MrObject)> = Some(end);
}
