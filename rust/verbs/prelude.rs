// SPDX-License-Identifier: GPL-2.0

//! The items that most files of the provider import, and the prelude of the core.

pub(crate) use crate::{
    driver_errors,
    removal::Link,
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
    gate::{
        Gate,
        Shared, //
    },
    num,
    prelude::*,
    provider::{
        self,
        msg_ep::{
            MsgLimits,
            Post,
            PostRefusal, //
        },
        ticket::{
            Failed,
            Ticket, //
        },
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
    request::CompletionHandler,
    sg::Memory,
    wc::WcStatus,
    wr::WorkRequest,
    AccessFlags,
    FastMr,
    Limits,
    Pd,
    PreparedMr,
    RegQp,
    SmallVec,
    ValidMr,
    WrError, //
};
