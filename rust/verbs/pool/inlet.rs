// SPDX-License-Identifier: GPL-2.0

//! Where device regions come back to their pool from contexts that can't sleep: from here they join their lines
//! when somebody comes for one, who can.
//!
//! Lock order: the lock is a leaf.

use core::mem;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock, //
};
use rdma::mr::FastMr;

/// How many may be here.
const ROOM: usize = 64;

/// Those that have come back.
#[pin_data]
pub(super) struct Inlet {
    #[pin]
    came: IrqLock<Came>,
    /// Whether there are any, for who looks without the lock.
    any: Atomic<bool>,
}

struct Came {
    /// With its capacity from the beginning.
    mrs: KVec<FastMr>,
    /// For so many more there is room to be kept.
    promised: usize,
}

/// Room for one.
pub(crate) struct Room<'a>(&'a Inlet);

impl Inlet {
    /// An empty one. May sleep.
    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let came = Came {
            mrs: KVec::with_capacity(ROOM, GFP_KERNEL)?,
            promised: 0,
        };
        Ok(pin_init!(Self {
            came <- new_irq_lock!(came, c"kfi_verbs_inlet"),
            any: Atomic::new(false),
        }))
    }

    /// Room for one that may come back, if there is some. Any context.
    pub(super) fn room(&self) -> Option<Room<'_>> {
        self.came.with(|came| {
            if came.mrs.len() + came.promised >= came.mrs.capacity() {
                return None;
            }
            came.promised += 1;
            Some(Room(self))
        })
    }

    /// Whether none has come back. Any context.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Relaxed)
    }

    /// Takes one that has come back; which one is no matter. Any context.
    pub(super) fn take(&self) -> Option<FastMr> {
        if self.is_empty() {
            return None;
        }
        self.came.with(|came| {
            let mr = came.mrs.pop();
            self.any.store(!came.mrs.is_empty(), Relaxed);
            mr
        })
    }
}

impl Room<'_> {
    /// It comes back. Any context.
    pub(crate) fn put(self, mr: FastMr) {
        self.0.came.with(|came| {
            // There is room, which was kept.
            let _ = came.mrs.push_within_capacity(mr);
            came.promised -= 1;
            self.0.any.store(true, Relaxed);
        });
        mem::forget(self);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.came.with(|came| came.promised -= 1);
    }
}
