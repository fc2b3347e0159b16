// SPDX-License-Identifier: GPL-2.0

//! What can be set of an endpoint.

use crate::provider::cm::Bounds;
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};
use kfi_bindings::{
    KFI_OPT_CONNECT_TIMEOUT,
    KFI_OPT_RNR_DELAY,
    KFI_OPT_STALL_TIMEOUT, //
};

/// What can be set of an endpoint.
pub(super) struct Options {
    connect: Atomic<u32>,
    stall: Atomic<u32>,
    rnr_delay: Atomic<u32>,
}

impl Options {
    /// As they are if nobody sets them.
    pub(super) fn new() -> Self {
        let Bounds {
            connect,
            stall,
            rnr_delay,
        } = Bounds::default();
        Self {
            connect: Atomic::new(connect),
            stall: Atomic::new(stall),
            rnr_delay: Atomic::new(rnr_delay),
        }
    }

    /// What a connection that is begun now goes by.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            connect: self.connect.load(Relaxed),
            stall: self.stall.load(Relaxed),
            rnr_delay: self.rnr_delay.load(Relaxed),
        }
    }

    /// That of this name, and the values that it can have.
    pub(super) fn find(&self, name: u32) -> Option<(&Atomic<u32>, core::ops::RangeInclusive<u32>)> {
        // What jiffies can measure, on every machine.
        const MS_MAX: u32 = 1_000_000_000;
        match name {
            KFI_OPT_CONNECT_TIMEOUT => Some((&self.connect, 1..=MS_MAX)),
            KFI_OPT_STALL_TIMEOUT => Some((&self.stall, 0..=MS_MAX)),
            KFI_OPT_RNR_DELAY => Some((&self.rnr_delay, 1..=655_360)),
            _ => None,
        }
    }
}
