// SPDX-License-Identifier: GPL-2.0

//! The items that most files of the provider import, and the prelude of the core.

pub(crate) use crate::{
    link::Link,
    refused,
    resources::Resources,
    rxe, //
};
pub(crate) use core::any::Any;
pub(crate) use kernel::{
    impl_has_work,
    new_work,
    sync::aref::ARef,
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
pub(crate) use kfabric::{
    num,
    prelude::*,
    provider::{
        self,
        Keys, //
    },
    workqueue::OwnedQueue,
    MrLimits,
    MrRequest,
    PushReserved,
    RemotePiece, //
};
pub(crate) use rdma::{
    mr::{
        Fence,
        Kind, //
    },
    sg::Memory,
    AccessFlags,
    FastMr,
    Pd,
    PreparedMr,
    SmallVec,
    ValidMr,
    WrError, //
};
