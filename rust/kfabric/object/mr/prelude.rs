// SPDX-License-Identifier: GPL-2.0

//! The items that most files of regions import, and the items of the objects' prelude.

pub(super) use super::{
    mr_ext::{
        EnableConditions,
        MrExt, //
    },
    reference::MrRef,
    state::MrState,
    Inner,
    MrBody,
    MrObject,
    Public,
    MAX_TOGETHER, //
};
pub(super) use crate::object::{
    domain::DomainObject,
    endpoint_mrs::EndpointMrs,
    prelude::*, //
};
