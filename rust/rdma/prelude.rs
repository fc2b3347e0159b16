// SPDX-License-Identifier: GPL-2.0

//! The items that most files of the crate import, and the kernel's own prelude.

pub(crate) use crate::{
    access::AccessFlags,
    device::Device,
    errno::errno,
    mr::{
        FastMr,
        Fence,
        PreparedMr,
        ValidMr, //
    },
    outstanding::Outstanding,
    pd::Pd,
    sg::DmaList,
    small_vec::SmallVec,
    wc::{
        WcStatus,
        WrError, //
    }, //
};
pub(crate) use core::{
    marker::PhantomData,
    mem::{
        self,
        ManuallyDrop, //
    },
    net::SocketAddr,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};
pub(crate) use kernel::{
    bindings,
    container_of,
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    },
    types::Opaque, //
};
