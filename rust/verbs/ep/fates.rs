// SPDX-License-Identifier: GPL-2.0

//! Which regions of an endpoint its peer has invalidated.
//!
//! A completion says by which key; the region that has it is found here, in any context. What there is no
//! room for isn't found, and is invalidated once more when it is closed.
//!
//! Lock order: the lock is a leaf.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock,
    num, //
};
use rdma::{
    lent::Fate,
    wc::Invalidated, //
};

/// How many there is room for, as a power of two.
const ROOM_BITS: u32 = 8;

/// How many places a key may have.
const PLACES: usize = 4;

type Room = KVec<Option<Arc<Fate>>>;

/// The regions.
#[pin_data]
pub(super) struct Fates {
    #[pin]
    room: IrqLock<Room>,
}

/// Room for them. May sleep.
pub(super) fn room() -> Result<Room> {
    Ok(KVec::from_elem(None, 1 << ROOM_BITS, GFP_KERNEL)?)
}

/// The places of a key.
fn places(room: &mut Room, key: u32) -> impl Iterator<Item = &mut Option<Arc<Fate>>> {
    const GOLDEN: u32 = 0x9e37_79b9;
    // The upper bits of a product depend on all bits of the key.
    let first = num::index(key.wrapping_mul(GOLDEN) >> (u32::BITS - ROOM_BITS));
    let first = first.min(room.len().saturating_sub(PLACES));
    room.iter_mut().skip(first).take(PLACES)
}

impl Fates {
    /// There are none.
    pub(super) fn new(room: Room) -> impl PinInit<Self> {
        pin_init!(Self {
            room <- new_irq_lock!(room, c"kfi_verbs_fates"),
        })
    }

    /// Adds a region, if there is room. Any context.
    pub(super) fn add(&self, fate: &Arc<Fate>) {
        self.room.with(|room| {
            if let Some(place) = places(room, fate.key()).find(|place| place.is_none()) {
                *place = Some(fate.clone());
            }
        });
    }

    /// Removes a region. Any context.
    pub(super) fn remove(&self, fate: &Arc<Fate>) {
        let is = |place: &&mut Option<Arc<Fate>>| {
            place.as_ref().is_some_and(|other| Arc::ptr_eq(other, fate))
        };
        let removed = self
            .room
            .with(|room| places(room, fate.key()).find(is).and_then(Option::take));
        drop(removed);
    }

    /// The peer has invalidated a key. Any context.
    pub(super) fn see(&self, invalidated: Invalidated<'_>) {
        self.room.with(|room| {
            for fate in places(room, invalidated.key()).flatten() {
                fate.see(invalidated);
            }
        });
    }
}
