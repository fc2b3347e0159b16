// SPDX-License-Identifier: GPL-2.0

//! The items that most files of the core and of its providers import.
//!
//! They include the kernel's own prelude.
//!
//! # Examples
//!
//! ```ignore
//! use kfabric::prelude::*;
//! ```

#[doc(no_inline)]
pub use crate::support::{
    errno::Errno,
    num::{
        index,
        widen,
        widen_u32, //
    },
    refusal::Refusal,
    task::NoIo, //
};
#[doc(no_inline)]
pub use core::ptr::NonNull;
#[doc(no_inline)]
pub use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
