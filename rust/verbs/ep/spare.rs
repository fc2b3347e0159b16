// SPDX-License-Identifier: GPL-2.0

//! Memory of transfers that have ended, for later transfers: an allocation costs more than the rest of a post.
//!
//! Lock order: the lock of the list is a leaf.

use crate::prelude::*;
use core::mem::MaybeUninit;

/// Memory for values of type `T`.
#[pin_data]
pub(super) struct Spare<T> {
    #[pin]
    list: IrqLock<KVec<KBox<MaybeUninit<T>>>>,
}

impl<T> Spare<T> {
    /// Returns an initializer of an empty list, which keeps the memory of up to `count` values. May sleep.
    pub(super) fn new(count: usize) -> Result<impl PinInit<Self>> {
        let list = KVec::with_capacity(count, GFP_KERNEL)?;
        Ok(pin_init!(Self {
            list <- new_irq_lock!(list, c"kfi_verbs_spare"),
        }))
    }

    /// Returns memory that was put back, or else new memory. Returns [`None`] if there is none. Any context.
    pub(super) fn take(&self) -> Option<KBox<MaybeUninit<T>>> {
        let spare = self.list.with(|list| list.pop());
        spare.or_else(|| KBox::new_uninit(GFP_ATOMIC).ok())
    }

    /// Keeps memory for later, or frees it. Any context.
    pub(super) fn put(&self, memory: KBox<MaybeUninit<T>>) {
        // Freed without the lock.
        drop(
            self.list
                .with(|list| list.push_within_capacity(memory).err()),
        );
    }
}
