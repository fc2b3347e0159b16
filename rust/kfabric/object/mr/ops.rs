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
        ops_open: nosys!(Self, ops_open),
    };

    fn describe(object: &MrObject, about: &mut c::kfi_helper_object) {
        let public = object.public();
        about.length = object.local.len;
        about.access = object.local.access.bits();
        about.key = public.key;
        // The key of an enabled region may be a raw one, and its descriptor 0. Its base is not 0 then.
        if public.base == 0 && public.desc == 0 && public.key == widen(c::KFI_KEY_NOTAVAIL) {
            about.state = c::kfi_helper_state_KFI_STATE_DISABLED;
        }
    }
}

impl Child for MrBody {
    type Parent = DomainBody;
    const SHARE: Share = Share::LIMITED;
    const END: Option<fn(&MrObject)> = Some(end);
}
