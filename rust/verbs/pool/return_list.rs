// SPDX-License-Identifier: GPL-2.0

//! Where device regions come back to their pool from contexts that can't sleep: from here they join their lines
//! when somebody comes for one, who can, or when what was idle is given back.
//!
//! Lock order: the lock is a leaf.

mod kunit;

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
    new_irq_lock,
    PushReserved, //
};

/// How many may be here.
const ROOM: usize = 64;

/// The regions that have come back.
#[pin_data]
pub(super) struct ReturnList<T> {
    #[pin]
    came: IrqLock<Came<T>>,
    /// Whether there are any, for who looks without the lock.
    any: Atomic<bool>,
}

struct Came<T> {
    /// With its capacity from the beginning.
    items: KVec<T>,
    /// Number of items for which space is promised.
    promised: usize,
    /// Somebody looks here before long, or is told to.
    watched: bool,
}

/// Room for one.
pub(super) struct Place<'a, T>(&'a ReturnList<T>);

impl<T: Send> ReturnList<T> {
    /// Makes an empty inlet, which nobody watches. May sleep.
    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let came = Came {
            items: KVec::with_capacity(ROOM, GFP_KERNEL)?,
            promised: 0,
            watched: false,
        };
        Ok(pin_init!(Self {
            came <- new_irq_lock!(came, c"kfi_verbs_inlet"),
            any: Atomic::new(false),
        }))
    }

    /// Reserves space for an item that may come back, if there is some. Any context.
    pub(super) fn place(&self) -> Option<Place<'_, T>> {
        self.came.with(|came| {
            if came.items.len() + came.promised >= ROOM {
                return None;
            }
            came.promised += 1;
            Some(Place(self))
        })
    }

    /// Checks whether no item has come back. Any context.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Relaxed)
    }

    /// Takes one that has come back; which one is no matter. Any context.
    pub(super) fn take(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.came.with(|came| {
            let item = came.items.pop();
            self.any.store(!came.items.is_empty(), Relaxed);
            item
        })
    }

    /// Notes whether somebody looks here before long. Returns whether there is anything. Any
    /// context.
    pub(super) fn set_watched(&self, watched: bool) -> bool {
        self.came.with(|came| {
            came.watched = watched;
            !came.items.is_empty()
        })
    }
}

impl<T> Place<'_, T> {
    /// Puts the item in. Returns whether somebody must be told to look here, which is returned
    /// once. Any context.
    pub(super) fn put(self, item: T) -> bool {
        let told = self.0.came.with(|came| {
            came.items.push_reserved(item);
            came.promised -= 1;
            self.0.any.store(true, Relaxed);
            mem::replace(&mut came.watched, true)
        });
        mem::forget(self);
        !told
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        self.0.came.with(|came| came.promised -= 1);
    }
}
