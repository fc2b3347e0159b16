// SPDX-License-Identifier: GPL-2.0

//! The items that most files of the core and of its providers import.
//!
//! They include the kernel's own prelude. The structures of the C API are for the core only.
//!
//! # Examples
//!
//! ```ignore
//! use kfabric::prelude::*;
//! ```

#[doc(no_inline)]
pub use crate::{
    new_irq_lock,
    support::{
        errno::Errno,
        irqlock::IrqLock,
        num::{
            index,
            widen,
            widen_u32, //
        },
        refusal::Refusal,
        task::NoIo, //
    }, //
};
#[doc(no_inline)]
pub use core::{
    marker::PhantomData,
    mem,
    net::SocketAddr,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
#[doc(no_inline)]
pub use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        CondVar,
        Mutex,
        SetOnce, //
    }, //
};
pub(crate) use kfi_bindings::{
    bio_vec,
    kfi_info,
    kfi_mr_attr,
    kfi_ops,
    kfid,
    kfid_cntr,
    kfid_cq,
    kfid_domain,
    kfid_ep,
    kfid_eq,
    kfid_fabric,
    kfid_mr,
    kvec,
    scatterlist, //
};
