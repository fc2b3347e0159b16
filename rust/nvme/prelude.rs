// SPDX-License-Identifier: GPL-2.0

//! The names that most files of this crate use.

pub(crate) use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
pub(crate) use kernel::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
    types::Opaque, //
};
pub(crate) use nvme_bindings as b;
