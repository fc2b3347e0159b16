// SPDX-License-Identifier: GPL-2.0

//! The names that most files of this crate use.

pub(crate) use core::cell::UnsafeCell;
pub(crate) use kernel::{
    bindings,
    sync::atomic::{
        Acquire,
        Full,
        Release, //
    },
    types::Opaque, //
};
pub(crate) use kfabric::{
    gate::{
        BusyGuard,
        Gate,
        GateGuard,
        Shared,
        Shut, //
    },
    prelude::*, //
};
pub(crate) use nvme_bindings as b;
