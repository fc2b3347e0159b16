// SPDX-License-Identifier: GPL-2.0

//! The regions of an endpoint that its peer may invalidate.
//!
//! A completion names the key that the peer has invalidated, and [`RegStates`] finds its region. The table must
//! have every region: hardware may fail to invalidate a region that the peer has already invalidated.
//!
//! Lock order: the lock is a leaf.

use crate::prelude::*;
use kernel::list::{
    List,
    ListArc, //
};
use rdma::{
    endpoint_mr::RegState,
    wc::Invalidated, //
};

/// Lists of regions, by a hash of their keys.
type Buckets = KVec<List<RegState>>;

/// The states of the regions that were registered on a connection.
#[pin_data]
pub(super) struct RegStates {
    #[pin]
    buckets: IrqLock<Buckets>,
}

/// Returns the list for a key.
fn bucket(buckets: &mut Buckets, key: u32) -> Option<&mut List<RegState>> {
    const GOLDEN: u32 = 0x9e37_79b9;
    // The upper bits of a product depend on all bits of the key.
    let hash = u64::from(key.wrapping_mul(GOLDEN));
    let index = hash.wrapping_mul(widen(buckets.len())) >> u32::BITS;
    buckets.get_mut(usize::try_from(index).ok()?)
}

/// Takes a region out of a list.
fn take(bucket: &mut List<RegState>, fate: &RegState) -> Option<ListArc<RegState>> {
    let mut cursor = bucket.cursor_front();
    while let Some(next) = cursor.peek_next() {
        if core::ptr::eq(&*next, fate) {
            return Some(next.remove());
        }
        cursor.move_next();
    }
    None
}

impl RegStates {
    /// Returns an initializer of a table with a list for each of `tx_size` requests. May sleep.
    pub(super) fn new(tx_size: usize) -> Result<impl PinInit<Self>> {
        let count = tx_size.max(1);
        let mut buckets = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            buckets.push(List::new(), GFP_KERNEL)?;
        }
        Ok(pin_init!(Self {
            buckets <- new_irq_lock!(buckets, c"kfi_verbs_fates"),
        }))
    }

    /// Adds a region, and returns whether it wasn't there before. Any context.
    pub(super) fn add(&self, fate: &Arc<RegState>) -> bool {
        let Ok(fate) = ListArc::try_from_arc(fate.clone()) else {
            return false;
        };
        self.buckets.with(|buckets| {
            if let Some(bucket) = bucket(buckets, fate.key()) {
                bucket.push_front(fate);
            }
        });
        true
    }

    /// Removes a region. Any context.
    pub(super) fn remove(&self, fate: &RegState) {
        let removed = self
            .buckets
            .with(|buckets| take(bucket(buckets, fate.key())?, fate));
        drop(removed);
    }

    /// Notes that the peer has invalidated a key. Any context.
    pub(super) fn see(&self, invalidated: Invalidated<'_>) {
        self.buckets.with(|buckets| {
            if let Some(bucket) = bucket(buckets, invalidated.key()) {
                bucket.iter().for_each(|fate| fate.see(invalidated));
            }
        });
    }
}
